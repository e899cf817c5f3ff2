"""Diagnoses of votes, sealed: what `diagnostics` computes, in a `Diagnosis` that nothing reads
by accident."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from secretballot._typing import IntArray
from secretballot._validation import check_instance
from secretballot.core.private import Votes
from secretballot.exceptions import DataError, Parameter
from secretballot.teachers.diagnostics.margins import (
    agreement,
    expected_margins,
    high_margin_shares,
    instability_distances,
    label_margins,
    unstable_shares,
    vote_margins,
)
from secretballot.teachers.diagnostics.sealed_result import Diagnosis

#: Levels Delta at which the curve of approximate high margin is given; each the nearest float, as
#: margins are.
LEVELS = np.arange(101) / 200


def diagnose_margins(counts: Votes) -> Diagnosis:
    """Return the realised margins of votes, and their distances to instability.

    Parameters
    ----------
    counts : Votes

    Returns
    -------
    Diagnosis
        ``margins`` and ``distances``, in votes, of shape (n_queries,).

    Privacy
    -------
    Sensitivity : one unit moves every margin by up to 2 and every distance by up to 1.
    """
    opened = _opened_counts(counts)
    found = {"margins": vote_margins(opened), "distances": instability_distances(opened)}
    return Diagnosis("realised margins", _vote_sizes(counts), found)


def diagnose_expected_margins(ensembles: Sequence[Votes], *, confidence: float = 0.95) -> Diagnosis:
    """Return the expected margins Delta_n(x), and the curve of approximate high margin.

    Parameters
    ----------
    ensembles : sequence of Votes
        Votes of ensembles that were trained on resamples, all at the same points; see
        `diagnostics_retraining.retrained_votes`. One will do, with no ``resampling_errors``.
    confidence : float
        Of the band about the whole curve.

    Returns
    -------
    Diagnosis
        ``margins``, ``standard_errors`` and ``resampling_errors`` of shape (n_queries,), as for
        `diagnostics.expected_margins`; ``levels``, ``shares``, ``low`` and ``high`` of shape
        (101,): nu at each Delta, and its band.

    Raises
    ------
    DataError
        If there are no ensembles, or their shapes differ.

    Privacy
    -------
    Sensitivity : one unit may move all of it.
    """
    if not ensembles:
        raise DataError(
            Parameter("ensembles"), " is empty; give the votes of one or more ensembles."
        )
    opened = [_opened_counts(counts) for counts in ensembles]
    if len({tuple(_vote_sizes(one).values()) for one in ensembles}) > 1:
        raise DataError(
            "ensembles differ in their shape; give votes of equally many teachers at the same"
            " points."
        )
    # the differences between ensembles are the resampling error, so they must be of one shape
    margins, standard, resampling = expected_margins(np.stack(opened))
    shares, low, high = high_margin_shares(margins, LEVELS, confidence)
    found = {"margins": margins, "standard_errors": standard, "resampling_errors": resampling}
    found |= {"levels": LEVELS, "shares": shares, "low": low, "high": high}
    return Diagnosis(
        "expected margins", {"ensembles": len(opened), **_vote_sizes(ensembles[0])}, found
    )


def diagnose_agreement(counts: Votes, labels: npt.ArrayLike) -> Diagnosis:
    """Return how often the vote and a single teacher agree with given labels.

    Of one model on all records, or true.

    Parameters
    ----------
    counts : Votes
    labels : array of shape (n_queries,), int
        Indices into the classes.

    Returns
    -------
    Diagnosis
        ``vote``, ``ties`` and ``teacher``, as for `diagnostics.agreement`, and ``margins``, the
        votes for each label less those for the best other class, of shape (n_queries,).

    Privacy
    -------
    Sensitivity : one unit may move all of it.
    """
    opened = _opened_counts(counts)
    vote, ties, teacher = agreement(opened, labels)
    found = {
        "vote": vote,
        "ties": ties,
        "teacher": teacher,
        "margins": label_margins(opened, labels),
    }
    return Diagnosis("agreement", _vote_sizes(counts), found)


def diagnose_stability(counts: Votes, needed: Mapping[int, float]) -> Diagnosis:
    """Return the share of unstable queries for every number T of abstentions that is considered.

    Parameters
    ----------
    counts : Votes
    needed : mapping of int to float
        For each T the distance to instability, in votes, from which on a query counts as stable.

    Returns
    -------
    Diagnosis
        ``max_unstable``, ``needed`` and ``unstable``, of shape (len(needed),).

    Privacy
    -------
    Sensitivity : one unit may move all of it.
    """
    at = np.array(list(needed.values()), dtype=np.float64)
    shares = unstable_shares(instability_distances(_opened_counts(counts)), at)
    found = {
        "max_unstable": np.array(list(needed), dtype=np.int64),
        "needed": at,
        "unstable": shares,
    }
    return Diagnosis("stability", _vote_sizes(counts), found)


def _opened_counts(counts: Votes) -> IntArray:
    check_instance("counts", counts, Votes)
    return counts._unseal()[0]


def _vote_sizes(counts: Votes) -> dict[str, int]:
    shape = counts.shape
    return {
        "queries": shape.n_queries,
        "classes": shape.n_classes,
        "teachers": shape.n_teachers or 0,
    }
