"""The list of a new account, by what its releases will need, and what a run takes off it."""

from pathlib import Path
from typing import NamedTuple

from secretballot._databases import DatabasePlace
from secretballot._validation import AggregatorName, Composition
from secretballot.aggregation import Aggregator, GaussianAggregator, VoteTableAggregator
from secretballot.exceptions import Argument, Parameter, ParameterError
from secretballot.learners.moments import RecordMomentsClassifier
from secretballot.learners.training.account import listed_sums_of
from secretballot.privacy.accounting import (
    ArgmaxGaussianEvent,
    Event,
    GaussianEvent,
    LabelGaussianEvent,
    PrivacyBudget,
    VectorSumEvent,
    VoteTableEvent,
    event_in_words,
    listed_sums,
)
from secretballot.privacy.ledger import Ledger

__all__ = ["ListedNoise", "events_to_list", "listed_noise"]

#: Steps that a list is made of at most, far beyond any use; of sums, as many as `listed_sums` has.
_MOST = {"labels": 10**11, "counts": 10**11, "sums": 1000}


def events_to_list(
    budget: PrivacyBudget,
    *,
    labels: int | None = None,
    counts: int | None = None,
    sums: int | None = None,
    teachers: int | None = None,
    n_classes: int | None = None,
    aggregator: AggregatorName | None = None,
    composition: Composition | None = None,
) -> tuple[Event, ...] | None:
    """Return events that all together cost a budget, with the least noise; None where none are
    asked for.

    Parameters
    ----------
    budget : PrivacyBudget
        Of all releases together.
    labels, counts, sums : int, optional
        How many labels of queries, or queries answered with noisy counts, or noisy sums over
        records, all releases together may take; one of the three.
    teachers : int, optional
        Number of teachers K of every release, of labels of two classes: they are priced for it.
    n_classes : int, optional
        Of labels and counts; 2 by default.
    aggregator : {"gaussian", "vote-table"}, optional
        Of labels, "gaussian" by default.
    composition : {"basic", "renyi", "list"}, optional
        Of the account; that of a list if, and only if, something is listed.

    Raises
    ------
    ParameterError
        If settings do not go together, or no noise keeps the budget.
    """
    given = {"labels": labels, "counts": counts, "sums": sums}
    asked = [name for name, number in given.items() if number is not None]
    # before anything is listed: a setting without effect is refused, not ignored
    for name, value, goes_with in (
        ("teachers", teachers, ("labels",)),
        ("classes", n_classes, ("labels", "counts")),
        ("aggregator", aggregator, ("labels",)),
    ):
        if value is not None and not set(asked) & set(goes_with):
            raise ParameterError(
                Parameter(name),
                f" says what is listed, and goes with {' or '.join(goes_with)} alone; leave it"
                " out.",
            )
    if composition is not None and (composition == "list") != bool(asked):
        raise ParameterError(
            Parameter("composition"),
            f" is {composition!r}, and what is to be listed is {' and '.join(asked) or 'nothing'};"
            " 'list' goes with labels, counts or sums, and they with no other.",
        )
    if not asked:
        return None
    for name in asked:
        if not 1 <= (given[name] or 0) <= _MOST[name]:
            raise ParameterError(
                f"{given[name]} {name} cannot be listed; list at least one, and at most"
                f" {_MOST[name]}."
            )
    if len(asked) > 1:
        raise ParameterError(
            f"{' and '.join(asked)} are both asked for; list one of them here, or several kinds of"
            " events from Python, with events= of Ledger."
        )
    if sums is not None:
        return (listed_sums(budget, sums),)
    classes = 2 if n_classes is None else n_classes
    if counts is not None:
        noise = GaussianAggregator.calibrate(budget, counts, n_classes=classes, release="counts")
        return noise.events(1)
    assert labels is not None
    if aggregator not in (None, "gaussian", "vote-table"):
        raise ParameterError(
            Parameter("aggregator"),
            f" is {aggregator!r}, whose answers cannot be taken one by one; list those of ",
            Argument("aggregator", "gaussian"),
            " or ",
            Argument("aggregator", "vote-table"),
            ".",
        )
    if aggregator == "vote-table":
        if teachers is None:
            raise ParameterError(
                Parameter("teachers"),
                " is missing; a table of chances is for one number of teachers, so give it.",
            )
        table = VoteTableAggregator.calibrate(
            budget, labels, n_classes=classes, n_teachers=teachers
        )
        return table.events(teachers)
    own = GaussianAggregator.calibrate(budget, labels, n_classes=classes, n_teachers=teachers)
    return own.events(teachers or 1)


class ListedNoise(NamedTuple):
    """What a run takes off the list of its ledger.

    Attributes
    ----------
    method : {"votes", "moments"}
    price : PrivacyBudget
        What it costs by itself, at the ledger's delta.
    aggregator : Aggregator or None
        Of votes.
    sums : VectorSumEvent or None
        Of moments.
    """

    method: str
    price: PrivacyBudget
    aggregator: Aggregator | None
    sums: VectorSumEvent | None


def listed_noise(
    place: Path | DatabasePlace,
    *,
    method: str,
    queries: int | None,
    aggregator: str = "gaussian",
    release: str = "auto",
    teachers: int | None = None,
    n_classes: int | None = None,
) -> ListedNoise | None:
    """Return the noise that a ledger's list has for a run; None where there is no ledger with a
    list.

    Parameters
    ----------
    place : Path or DatabasePlace
        The ledger's own place.
    method : {"auto", "votes", "moments", "record-votes"}
        "auto" takes moments where sums are listed and no queries are asked for.
    queries : int or None
        Queries that the run takes, of votes.
    aggregator, release, teachers, n_classes
        As the run has them.

    Raises
    ------
    ParameterError
        If no listed noise is of the kind that is asked for, or the number of queries is missing.
    BudgetError
        If not so much is listed.
    LedgerError
        If the ledger cannot be read.
    """
    if (isinstance(place, Path) and place.is_dir()) or not Ledger.exists(place):
        return None
    ledger = Ledger.open_existing(place)
    listed = ledger.listed_events()
    if listed is None:
        return None
    kinds = {type(event) for event in listed}
    by_sums = VectorSumEvent in kinds and queries is None
    if method not in ("auto", "votes", "moments"):
        raise ParameterError(
            Parameter("method"),
            f" is {method!r}, whose noise follows from a price; a ledger with a list takes moments"
            " and votes. Nothing was spent.",
        )
    if method == "moments" or (method == "auto" and by_sums):
        # as many stages as the run's learner takes by default
        sums, price = listed_sums_of(ledger, None, RecordMomentsClassifier().n_stages)
        return ListedNoise("moments", price, None, sums)
    if queries is None:
        words = "; ".join(map(event_in_words, ledger.remaining_events() or ())) or "nothing"
        raise ParameterError(
            Parameter("queries"),
            f" is missing: say how much of the ledger's list this run takes, of which there is"
            f" left: {words}.",
        )
    own = _listed_aggregator(ledger, kinds, queries, aggregator, release, teachers, n_classes)
    return ListedNoise("votes", own.budget, own, None)


def _listed_aggregator(
    ledger: Ledger,
    kinds: set[type[Event]],
    queries: int,
    aggregator: str,
    release: str,
    teachers: int | None,
    n_classes: int | None,
) -> Aggregator:
    """Return the aggregator with the listed noise of the kind that is asked for."""
    if aggregator not in ("gaussian", "vote-table"):
        raise ParameterError(
            Parameter("aggregator"),
            f" is {aggregator!r}, whose noise follows from a price; a ledger with a list takes ",
            Argument("aggregator", "gaussian"),
            " or ",
            Argument("aggregator", "vote-table"),
            ". Nothing was spent.",
        )
    if ArgmaxGaussianEvent in kinds and n_classes is None:
        raise ParameterError(
            Parameter("classes"),
            " are missing: the ledger lists labels of more than two, so name them all.",
        )
    classes = 2 if n_classes is None else n_classes
    of_labels = LabelGaussianEvent if classes == 2 else ArgmaxGaussianEvent
    # a table of chances unasked only where the list has no other noise for these votes
    by_table = VoteTableEvent in kinds and not kinds & {GaussianEvent, of_labels}
    if aggregator == "vote-table" or by_table:
        if teachers is None:
            raise ParameterError(
                Parameter("teachers"),
                " is missing; a table of chances is for one number of teachers, so give it.",
            )
        return VoteTableAggregator.from_ledger(
            ledger, queries, n_teachers=teachers, n_classes=classes
        )
    auto = "labels" if of_labels in kinds else "counts"
    return GaussianAggregator.from_ledger(
        ledger,
        queries,
        n_classes=classes,
        n_teachers=teachers,
        release=auto if release == "auto" else release,
    )
