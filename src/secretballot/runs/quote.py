"""What a run would cost and ask, and what is to be expected of it, before anything is paid."""

import math
from dataclasses import dataclass, field
from typing import Any

from secretballot._validation import RELATIONS, check_choice, check_count
from secretballot.accounting import PrivacyBudget, noisy_votes, teacher_shape
from secretballot.accounting.gaussian import gaussian_mu
from secretballot.accounting.recipes import (
    Terms,
    deviation,
    right_chance,
    table_deviation,
    unanimous_chance,
)
from secretballot.accounting.stream_recipes import answer_chance, scale_of_stream
from secretballot.core.mechanisms import (
    AbstentionTable,
    ConfidentLabels,
    NoisyMeans,
    NoisyVotes,
    SparseVector,
    TableLabels,
    VoteQuantiles,
    teachers_of,
)
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.moments.estimators import RecordMomentsClassifier
from secretballot.learners.record_votes import default_votes
from secretballot.runs.account import AccountState, state_of_account
from secretballot.runs.caution import cautions_of_noise, cautions_of_price
from secretballot.runs.learn import (
    LearnRun,
    cautions_of_settings,
    cautions_of_tables,
    check_against,
    checked_folder,
    n_askable,
)
from secretballot.runs.progress import Caution, Watch
from secretballot.runs.promise import check_stated_records
from secretballot.runs.records import (
    MOMENTS,
    RecordsRun,
    cautions_of_records_run,
    check_records_run,
    checked_folder_of_records,
)
from secretballot.runs.table_votes import (
    TableRun,
    cautions_of_table_run,
    check_table_run,
    checked_folder_of_table,
    voting_of_run,
)
from secretballot.runs.tables import read_inputs
from secretballot.runs.voting import (
    VotingSettings,
    number_of_teachers,
    terms_of_run,
)
from secretballot.teachers.records import record_votes_shape
from secretballot.teachers.votes import guarantee_of

#: Margins at which it is said how often a label comes out right, in shares of the teachers.
_MARGINS = (0.2, 0.6, 1.0)
_VOTES = "votes"


@dataclass(frozen=True)
class Quote:
    """What a run would cost and ask, and what is to be expected of it.

    Attributes
    ----------
    method : str
        "moments", "votes" or "record-votes".
    epsilon, delta : float
        Price.
    relation : str
    released : str
        What would leave, in words.
    sigma : float
        Scale of its noise: of votes in votes, of sums in multiples of what one record can move. The
        standard deviation, and of the Laplace noise of a sparse vector its own scale; of a table of
        abstentions the votes over which their chance falls by a factor of e, and of a table of
        chances the Gaussian noise that tells as much of an even vote.
    n_public : int
        Public points.
    queries : int or None
        Of them asked; None where no single points are.
    teachers : int or None
    off_in_the_mean : float or None
        Of noisy counts: scale of the noise on the mean of all of them, in votes.
    right : dict of float to float
        Of labels that all queries get: probability that one comes out right, by the margin of the
        votes as a share of the teachers.
    answered : dict of float to float
        Of votes under the sparse vector or a table: probability that the first query is answered,
        by the same.
    cautions : tuple of Caution
        What the run would ask.
    account : AccountState or None
        What would pay; None where no files are known.
    noise_unit : str
        What `sigma` is counted in; empty where a quantile is drawn, which has no such scale.
    unanimous : float or None
        Of quantiles: least probability with which one that all teachers agree on is drawn.
    can_be_planned : bool
        Whether a plan forecasts such runs.
    """

    method: str
    epsilon: float
    delta: float
    relation: str
    released: str
    sigma: float
    n_public: int
    queries: int | None = None
    teachers: int | None = None
    off_in_the_mean: float | None = None
    right: dict[float, float] = field(default_factory=dict)
    answered: dict[float, float] = field(default_factory=dict)
    cautions: tuple[Caution, ...] = ()
    account: AccountState | None = None
    noise_unit: str = "votes"
    unanimous: float | None = None
    can_be_planned: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return the quote for machines; questions that depend on private data are left out."""
        account = self.account
        return {
            "method": self.method,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "relation": self.relation,
            "released": self.released,
            "sigma": self.sigma,
            "public": self.n_public,
            "queries": self.queries,
            "teachers": self.teachers,
            "off_in_the_mean": self.off_in_the_mean,
            **({} if self.unanimous is None else {"unanimous": self.unanimous}),
            "right_by_margin": {f"{share:g}": value for share, value in self.right.items()},
            "answered_by_margin": {f"{share:g}": value for share, value in self.answered.items()},
            "asks": [
                {"name": caution.name, "text": caution.text}
                for caution in self.cautions
                if not caution.private
            ],
            "account": None if account is None else account.to_json(),
        }


@dataclass(frozen=True)
class PriceRun:
    """Settings of a run to come, in public numbers.

    Attributes
    ----------
    public, classes : int
        Public points, and classes.
    columns : int or None
        Columns of the tables once encoded: with `records`, and no number of teachers, they set it.
    others
        As for `LearnRun` and `RecordsRun`.
    """

    public: int
    classes: int
    epsilon: float
    delta: float
    method: str = MOMENTS
    columns: int | None = None
    teachers: int | None = None
    queries: int | None = None
    mechanism: str = "gaussian"
    max_abstentions: int | None = None
    threshold: int | None = None
    max_answers: int | None = None
    estimate_epsilon: float | None = None
    release: str = "auto"
    strategy: str = "passive"
    round_size: int | None = None
    teacher: str = "logistic"
    student: str = "auto"
    votes_per_record: int | None = None
    records: int | None = None
    relation: str = "add-remove"

    @property
    def budget(self) -> PrivacyBudget:
        """The price."""
        return PrivacyBudget(self.epsilon, self.delta)


def quote_of_numbers(run: PriceRun) -> Quote:
    """Return what a run of these settings would cost and ask.

    Raises
    ------
    ParameterError
        If a setting cannot be.
    """
    check_count("public", run.public)
    check_count("classes", run.classes, minimum=2)
    check_choice("relation", run.relation, RELATIONS)
    check_stated_records(run.records)
    asked = [*cautions_of_price(run.budget, run.records)]
    if run.method != _VOTES:
        return _quote_of_records(run, run.method, run.public, run.classes, asked)
    if run.teachers is None and run.records is not None and run.columns is None:
        raise ParameterError(
            Parameter("columns"),
            " is missing: the number of teachers follows from it where records are stated; give"
            " it, or the number of teachers with --teachers.",
        )
    n_teachers = number_of_teachers(run, run.columns or 1)
    terms = terms_of_run(run, teacher_shape(run.public, run.classes, n_teachers))
    asked += cautions_of_noise(terms)
    return _quote_of_votes(run, terms, run.public, asked)


def quote_of_run(run: LearnRun | RecordsRun | TableRun, watch: Watch) -> Quote:
    """Return what a run would cost and ask, by its files; nothing is made, trained or spent.

    Parameters
    ----------
    run : LearnRun, RecordsRun or TableRun
    watch : Watch
        Told what is noted about the tables.

    Raises
    ------
    ParameterError, DataError
        If something does not fit, as the run itself would raise it.
    LedgerError
        If the ledger is that of something else, or cannot be used.
    """
    if isinstance(run, TableRun):
        return _quote_of_table(run, watch)
    if isinstance(run, LearnRun):
        # the run's own checks, in its order: a quote refuses what the run would refuse
        folder = checked_folder(run)
        inputs = read_inputs(run.tables, watch)
        check_against(run, inputs, watch)
        asked = [*cautions_of_settings(run), *cautions_of_tables(run, inputs)]
        n_points, n_teachers = n_askable(run, inputs), number_of_teachers(run, inputs.n_columns)
        account = state_of_account(run, folder, inputs.unit)
        terms = terms_of_run(run, teacher_shape(n_points, len(inputs.classes), n_teachers))
        return _quote_of_votes(run, terms, n_points, asked, account)
    folder = checked_folder_of_records(run)
    inputs = read_inputs(run.tables, watch)
    check_records_run(run, inputs, watch)
    asked = [*cautions_of_price(run.budget, run.records), *cautions_of_records_run(run, inputs)]
    account = state_of_account(run, folder, inputs.unit)
    n_public = len(inputs.X_public)
    return _quote_of_records(run, run.method, n_public, len(inputs.classes), asked, account)


def _quote_of_table(run: TableRun, watch: Watch) -> Quote:
    """Return the quote of a run on a number, or on several labels."""
    folder = checked_folder_of_table(run)
    inputs = read_inputs(run.tables, watch, any_target=True)
    check_table_run(run, inputs, watch)
    voting = voting_of_run(run, inputs)
    asked = [
        *cautions_of_price(run.budget, run.records),
        *cautions_of_table_run(run, inputs, watch),
    ]
    mechanism, shape, public = voting.mechanism, voting.shape, voting.public
    teachers = shape.n_teachers or 0
    points = f"at {voting.n_points:,} public points"
    unanimous, sigma, unit = None, 0.0, "votes"
    if isinstance(mechanism, NoisyMeans):
        low, high = public["bounds"]
        released, unit = f"noisy means of the votes {points}", "of the target, on each mean"
        # noise is drawn on a sum of positions; told is its size on a mean, in the target's unit
        sigma = mechanism.sigma * (high - low) / (teachers * (shape.n_classes - 1))
    elif isinstance(mechanism, VoteQuantiles):
        released = f"quantiles of the votes, of rank {mechanism.rank}, {points}"
        unanimous, unit = unanimous_chance(mechanism, shape), ""
    else:
        assert isinstance(mechanism, NoisyVotes)
        what = "labels" if mechanism.release == "labels" else "noisy counts of votes for labels"
        released, sigma = f"{what}, {len(public['labels'])} of them, {points}", mechanism.scale
    return Quote(
        _VOTES,
        run.epsilon,
        run.delta,
        run.relation,
        released,
        sigma,
        len(inputs.X_public),
        voting.n_points,
        teachers,
        cautions=tuple(asked),
        account=state_of_account(run, folder, inputs.unit),
        noise_unit=unit,
        unanimous=unanimous,
        can_be_planned=False,
    )


def _quote_of_votes(
    run: VotingSettings,
    terms: Terms,
    n_public: int,
    asked: list[Caution],
    account: AccountState | None = None,
) -> Quote:
    """Return the quote of a run of voting."""
    right, answered, off = {}, {}, None
    mechanism, shape = terms.mechanism, terms.shape
    n_queries, n_teachers = shape.n_queries, teachers_of(shape)
    if isinstance(mechanism, SparseVector | AbstentionTable):
        sigma = scale_of_stream(mechanism)
        released = f"labels, until {mechanism.max_abstentions} queries were not answered"
        answered = {
            share: answer_chance(mechanism, max(0, math.ceil(share * n_teachers / 2) - 1))
            for share in _MARGINS
        }
    elif isinstance(mechanism, NoisyVotes) and mechanism.release == "counts":
        sigma, released = deviation(mechanism), f"{n_queries:,} noisy counts of votes"
        # independent noise averages out over the queries
        off = sigma / math.sqrt(n_queries)
    else:
        released = f"{n_queries:,} labels"
        if isinstance(mechanism, ConfidentLabels):
            sigma = mechanism.sigma
            released = (
                f"at most {mechanism.max_answers:,} labels of {n_queries:,} queries, where"
                f" {mechanism.threshold} votes are reached"
            )
        elif isinstance(mechanism, TableLabels):
            sigma = table_deviation(mechanism, n_teachers)
        else:
            assert isinstance(mechanism, NoisyVotes)
            sigma = deviation(mechanism)
        right = {share: right_chance(mechanism, share * n_teachers, shape) for share in _MARGINS}
    if run.estimate_epsilon is not None:
        released += (
            f", unless an estimate at epsilon {run.estimate_epsilon:g} of these says another number"
        )
    return Quote(
        _VOTES,
        run.budget.epsilon,
        run.budget.delta,
        run.relation,
        released,
        sigma,
        n_public,
        n_queries,
        n_teachers,
        off,
        right,
        answered,
        tuple(asked),
        account,
    )


def _quote_of_records(
    run: PriceRun | RecordsRun,
    method: str,
    n_public: int,
    n_classes: int,
    asked: list[Caution],
    account: AccountState | None = None,
) -> Quote:
    """Return the quote of a run over all records."""
    if not run.budget.delta > 0:
        raise ParameterError(
            Parameter("delta"), f" is 0, and the noise of --method {method} needs more than 0."
        )
    if method == MOMENTS:
        n_stages = RecordMomentsClassifier().n_stages
        # a record that is replaced moves a sum twice as far as one that comes or goes
        moved = 2 if run.relation == "replace-one" else 1
        sigma = moved * math.sqrt(n_stages) / gaussian_mu(run.epsilon, run.delta)
        queries, released = None, f"{n_stages} noisy sums over all records"
    else:
        queries = n_public if run.queries is None else run.queries
        own = run.votes_per_record
        votes = default_votes(queries) if own is None else own
        guarantee = guarantee_of("record", run.relation)
        shape = record_votes_shape(queries, n_classes, votes, guarantee)
        sigma = noisy_votes(run.budget, shape, release="counts").scale
        released = f"noisy counts of {n_classes} classes at {queries:,} public points"
    return Quote(
        method,
        run.epsilon,
        run.delta,
        run.relation,
        released,
        sigma,
        n_public,
        queries,
        cautions=tuple(asked),
        account=account,
    )
