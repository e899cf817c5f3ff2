"""How many public points and private records the semi-private learner asks for."""

import math

from secretballot._validation import (
    RELATIONS,
    check_choice,
    check_count,
    check_positive,
    check_probability,
)


def public_points_needed(vc_dimension: int, alpha: float, beta: float) -> int:
    """Return how many public points make the labelled hypotheses a cover of the class, by the
    theorem's constants.

    Parameters
    ----------
    vc_dimension : int
        d, at least 1.
    alpha : float
        How far, at most, some representative is from each hypothesis: share of the points they
        label differently.
    beta : float
        Failure probability, over the public points.

    Returns
    -------
    int
        32 (d log(1 / alpha) + log(1 / beta)) / alpha, rounded up. Points that are too few cost
        accuracy, never privacy.

    Raises
    ------
    ParameterError
        If a number is out of its range.

    Notes
    -----
    Source : Alon, Bassily, Moran 2019, arXiv:1910.11519, as used in Nandi and Bassily 2020,
        Algorithm 4.
    """
    d = check_count("vc_dimension", vc_dimension)
    share, failure = check_probability("alpha", alpha), check_probability("beta", beta)
    return math.ceil(32 * (d * math.log(1 / share) + math.log(1 / failure)) / share)


def private_records_needed(
    n_candidates: int, alpha: float, beta: float, *, epsilon: float, relation: str = "add-remove"
) -> int:
    """Return how many private records make the chosen candidate within `alpha` of the best in true
    error.

    Parameters
    ----------
    n_candidates : int
        Number N of candidates, public.
    alpha : float
        Allowed excess error.
    beta : float
        Failure probability, over the records and the draw.
    epsilon : float
        Price of the choice.
    relation : {"add-remove", "replace-one"}

    Returns
    -------
    int
        Smallest n with scale log(2 N / beta) / n + sqrt(2 log(4 N / beta) / n) <= alpha.

    Raises
    ------
    ParameterError
        If a number is out of its range.

    Notes
    -----
    The first term is what the draw loses in empirical error with probability 1 - beta / 2 (see
    `SemiPrivateClassifier.score_loss`), where scale is 1 / epsilon or 2 / epsilon. The second is
    twice Hoeffding's sqrt(log(4 N / beta) / (2 n)), uniform over the N candidates with probability
    1 - beta / 2: once for the chosen and once for the best.
    """
    n, share = check_count("n_candidates", n_candidates), check_probability("alpha", alpha)
    failure, loss = check_probability("beta", beta), check_positive("epsilon", epsilon)
    moved = 1 if check_choice("relation", relation, RELATIONS) == "add-remove" else 2
    drawn = moved / loss * math.log(2 * n / failure)
    spread = math.sqrt(2 * math.log(4 * n / failure))
    # alpha x^2 - spread x - drawn = 0 in x = sqrt(n)
    root = (spread + math.sqrt(spread**2 + 4 * share * drawn)) / (2 * share)
    return math.ceil(root**2)
