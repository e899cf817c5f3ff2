"""Sparse-vector voting of teachers that learned from a relabelled secret sample: Nandi, Bassily
2020, Algorithm 3."""

from collections.abc import Mapping
from typing import Any, ClassVar

from secretballot._typing import IntArray
from secretballot._validation import check_choice, check_count
from secretballot.aggregation.base import (
    Aggregator,
    AnswerRun,
    Answers,
    budget_or_price,
    check_fields,
)
from secretballot.aggregation.streams import StreamAggregator, stream_aggregator
from secretballot.core.mechanisms import RelabelledSample
from secretballot.core.noise import NoiseSource
from secretballot.exceptions import Parameter, ParameterError
from secretballot.privacy.accounting import (
    Event,
    PrivacyBudget,
    Sampled,
    SparseStream,
    Stream,
    TableStream,
)

_NOISE = ("threshold_scale", "query_scale", "threshold", "max_unstable")
_SAMPLE = ("sampled", "out_of", "neighbours", "relabel_epsilon")
_TABLE = ("order", "charge", "false_answer", "max_unstable")
_TERMS = (*_SAMPLE, "n_queries", "n_classes", "calibration", "budget")


class RelabelledAggregator(Aggregator):
    """Answer as the sparse vector or a table of abstentions does.

    Pay what it costs on a relabelled secret sample of the records.

    The price is true only of teachers that learned from a sample drawn for this one reservation, as
    `secretballot.learners.labelers.agnostic` draws it: asked of other teachers, or twice of the
    same, it promises too much. So the door takes it only with teachers that are declared to be of
    this sample, and for the reservation they were drawn for.

    Parameters
    ----------
    event : Sampled
        Noise, sample and relabelling.
    n_queries : int
        Most queries that one release asks; it does not enter the price.
    budget : PrivacyBudget, optional
        Price of a release; the door checks it.
    delta : float, optional
        Instead of `budget`: price the event at this delta.
    calibration : {"given", "tight", "paper"}
        How the noise was found, for the record.

    Privacy
    -------
    Unit : one record.
    Relation : that of the event: replace one record, the number of records being public; or add or
        remove one.
    Sensitivity : one record of the relabelled sample reaches one teacher, hence one vote; the
        relabelling is paid for.
    Price : that of the stream, relabelled, then amplified by sampling.
    Source : Nandi and Bassily 2020, Algorithm 3 and Lemma 3.4, with other constants; proofs in
        docs/explanation/prices.md.
    Rounding : upward, in the accountant.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or both or none of `budget` and `delta` are given.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> stream = accounting.calibrate_stream(sb.PrivacyBudget(1.0, 1e-6), 1)
    >>> sample = {"sampled": 10, "out_of": 1000, "relation": "replace-one", "relabel_epsilon": 1.0}
    >>> event = accounting.Sampled(stream=stream, **sample)
    >>> aggregator = sb.aggregation.RelabelledAggregator(event, n_queries=50, delta=1e-6)
    >>> aggregator.budget.epsilon < 1.0, aggregator.sample["sampled"]
    (True, 10)
    """

    name: ClassVar[str] = "relabelled-sample"
    n_classes = 2
    release = "labels"

    def __init__(
        self,
        event: Sampled,
        *,
        n_queries: int,
        budget: PrivacyBudget | None = None,
        delta: float | None = None,
        calibration: str = "given",
    ) -> None:
        if not isinstance(event, Sampled):
            raise ParameterError(
                Parameter("event"), f" is a {type(event).__name__}; give a Sampled."
            )
        self.event = event
        self.n_queries = check_count("n_queries", n_queries)
        self.calibration = check_choice("calibration", calibration, ("given", "tight", "paper"))
        self.budget = budget_or_price(budget, delta, (event,))

    @property
    def _stream_voting(self) -> StreamAggregator:
        """What answers: the stream of the event that is priced, whatever was set since."""
        # the answers are the stream's; only the price differs, so it carries this budget unpriced
        return stream_aggregator(self.event.stream, self.n_queries, self.budget)

    @property
    def sigma_of_counts(self) -> float | None:
        """None: no counts are released."""
        return None

    @property
    def sample(self) -> dict[str, Any]:
        """How the sample was drawn and relabelled."""
        sample = self.event.model_dump(include={"sampled", "out_of", "relabel_epsilon"})
        return {**sample, "neighbours": self.event.relation}

    @property
    def most_abstentions(self) -> int:
        """Abstentions after which nothing more is answered."""
        return self._stream_voting.max_unstable

    def core_mechanism(self, n_teachers: int) -> RelabelledSample:
        """Return the mechanism of the core that draws the same answers."""
        return RelabelledSample(stream=self._stream_voting.core_mechanism(n_teachers))

    def events(self, n_teachers: int) -> tuple[Event, ...]:
        """Return what one release is to the accountant; the number of teachers does not enter."""
        check_count("n_teachers", n_teachers)
        return (self.event,)

    def describe(self) -> dict[str, Any]:
        """Return the parameters as a JSON object from which `aggregator_from_description`
        rebuilds it."""
        return {
            "name": self.name,
            **self.event.stream.model_dump(exclude={"kind", "abstentions"}),
            "max_unstable": self.event.stream.abstentions,
            **self.sample,
            "n_queries": self.n_queries,
            "n_classes": self.n_classes,
            "calibration": self.calibration,
            "budget": self.budget.to_json(),
        }

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> "RelabelledAggregator":
        """Rebuild the aggregator that `describe` describes.

        Raises
        ------
        ParameterError
            If a field is missing, unknown or out of its range.
        """
        # of the two kinds of streams tables alone have a charge
        by_table = "charge" in description
        noise = _TABLE if by_table else _NOISE
        given = check_fields(description, cls.name, (*noise, *_TERMS))
        if given.pop("n_classes") != cls.n_classes:
            raise ParameterError(
                Parameter("n_classes"), " is not 2; a relabelled sample has two classes."
            )
        stopped = given.pop("max_unstable")
        drawn = {field: given.pop(field) for field in noise if field != "max_unstable"}
        sample = {field: given.pop(field) for field in _SAMPLE if field != "neighbours"}
        stream: Stream = (
            TableStream(abstentions=stopped, **drawn)
            if by_table
            else SparseStream(abstentions=stopped, **drawn)
        )
        relation = given.pop("neighbours")
        return cls(Sampled(stream=stream, relation=relation, **sample), **given)

    def answer_probability(self, distance: int) -> float:
        """Return the probability that the first query is answered if its stability is
        `distance`."""
        return self._stream_voting.answer_probability(distance)

    def check_useful(self, n_teachers: int) -> None:
        """Refuse a threshold that even unanimous votes hardly ever pass.

        Raises
        ------
        ParameterError
            If a unanimous vote is answered with probability below 1 %.
        """
        self._stream_voting.check_useful(n_teachers)

    def answer(self, counts: IntArray, n_teachers: int, noise: NoiseSource) -> Answers:
        """Draw the answers to at most `n_queries` queries, as `SparseVectorAggregator.answer`
        does.

        `counts` has shape (n_queries, n_classes).
        """
        return self._stream_voting.answer(counts, n_teachers, noise)

    def start(
        self, n_teachers: int, noise: NoiseSource, state: Mapping[str, int] | None = None
    ) -> AnswerRun:
        """Begin a stream, or go on where an earlier run left its secret state.

        Raises
        ------
        ParameterError
            If the state is not one of this stream.
        """
        return self._stream_voting.start(n_teachers, noise, state)
