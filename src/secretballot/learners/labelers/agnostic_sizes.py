"""The public numbers of an agnostic labeler: how much is sampled, how it is asked, how many
teachers there are."""

import math
from dataclasses import dataclass

from secretballot._validation import check_choice, check_count, check_probability
from secretballot.accounting import (
    PrivacyBudget,
    Sampled,
    delta_upper,
)
from secretballot.accounting.sample_calibration import (
    largest_sample,
    sample_grid,
    stream_budget,
)
from secretballot.accounting.stream_recipes import bassily_noise
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.labelers.stream_sizes import (
    printed_teachers,
    stream_for,
    teachers_for,
    tight_stream,
)

_PRINTED_DIVISOR = 56  # Algorithm 3, line 1: n' = epsilon n / 56
_TEACHER_SHARE = 12  # a teacher errs on alpha / 12 of the relabelled points (proof of Lemma 3.5)


@dataclass(frozen=True)
class PrintedConstants:
    """The constants of Algorithm 3, line 1, of Nandi and Bassily 2020, as printed, rounded up.

    Attributes
    ----------
    n_sampled : int
        n' = epsilon n / 56, rounded down.
    max_abstentions : int
        T = max(1, m alpha / 8 + sqrt(3 m alpha log(m / beta)) / 4).
    inner : PrivacyBudget
        With e = min(1, alpha max(1, sqrt(m alpha))): epsilon e / log(2 / delta), delta / (2 exp(e)
        log(2 / delta)).
    """

    n_sampled: int
    max_abstentions: int
    inner: PrivacyBudget

    @classmethod
    def of(
        cls, budget: PrivacyBudget, n_records: int, n_queries: int, alpha: float, beta: float
    ) -> "PrintedConstants":
        """Return the constants for n records and m questions."""
        expected = n_queries * alpha
        unstable = expected / 8 + math.sqrt(3 * expected * math.log(n_queries / beta)) / 4
        inside = min(1.0, alpha * max(1.0, math.sqrt(expected)))
        log = math.log(2 / budget.delta)
        return cls(
            math.floor(budget.epsilon * n_records / _PRINTED_DIVISOR),
            max(1, math.ceil(unstable)),
            PrivacyBudget(inside / log, budget.delta / (2 * math.exp(inside) * log)),
        )


def agnostic_terms(
    budget: PrivacyBudget,
    n_queries: int,
    *,
    alpha: float,
    beta: float,
    n_records: int | None,
    relation: str,
    relabel_epsilon: float,
    max_abstentions: int | None,
    n_teachers: int | None,
    calibration: str,
) -> tuple[Sampled, int]:
    """Return noise, sample and relabelling, and the number of teachers.

    Parameters
    ----------
    budget : PrivacyBudget
    n_queries, alpha, beta, relation, relabel_epsilon, max_abstentions, n_teachers, calibration
        As for `AgnosticLabeler`.
    n_records : int or None
        None where it is private.

    Raises
    ------
    ParameterError
        If a number is out of its range, the calibration is not certified for the budget, or the
        sample has fewer records than teachers.
    """
    m = check_count("n_queries", n_queries)
    alpha, beta = check_probability("alpha", alpha), check_probability("beta", beta)
    unstable = None if max_abstentions is None else check_count("max_abstentions", max_abstentions)
    teachers = None if n_teachers is None else check_count("n_teachers", n_teachers)
    out_of = sample_grid(relation, n_records)
    # The stream's noise decides how many teachers are needed, and how much of the records may be
    # sampled for the rest of the price: abstentions, stream, sample, teachers, in this order.
    if check_choice("calibration", calibration, ("tight", "paper")) == "tight":
        inner = stream_budget(budget, relation, relabel_epsilon)
        if unstable is None:
            stream = tight_stream(inner, m, alpha / _TEACHER_SHARE, beta, teachers)
        else:
            stream = stream_for(inner, unstable)
        event = largest_sample(budget, stream, out_of, relation, relabel_epsilon)
        needed = teachers_for(stream, m, beta)
    else:
        if n_records is None or relabel_epsilon != 1:
            raise ParameterError(
                "calibration 'paper' is printed for replace-one and a relabel_epsilon of 1 alone."
            )
        printed = PrintedConstants.of(budget, n_records, m, alpha, beta)
        unstable = printed.max_abstentions if unstable is None else unstable
        event = _printed_event(budget, printed, n_records, m, unstable)
        needed = printed_teachers(printed.inner, m, unstable, beta)
    teachers = needed if teachers is None else teachers
    if n_records is not None and teachers > event.sampled:
        raise ParameterError(
            Parameter("n_records"),
            f" is {n_records}, of which {event.sampled} may be sampled, fewer than {teachers}"
            " teachers need; give more records, a larger epsilon, or a smaller ",
            Parameter("n_queries"),
            ", ",
            Parameter("max_abstentions"),
            " or ",
            Parameter("n_teachers"),
            ".",
        )
    return event, teachers


def _printed_event(
    budget: PrivacyBudget, printed: PrintedConstants, n_records: int, n_queries: int, unstable: int
) -> Sampled:
    """Return what the printed constants come to, if they are certified for the budget.

    Ours is the un-resampled split, the halved margin and the earlier stop; the noise is that of the
    printed one.
    """
    # The price of the printed constants is computed and compared with the budget: what is not
    # certified is refused rather than believed.
    if not budget.epsilon <= _PRINTED_DIVISOR:
        raise ParameterError(
            Parameter("epsilon"),
            f" is {budget.epsilon:g}; calibration 'paper' samples epsilon / 56 of the records, so"
            " it must be at most 56. Use 'tight'.",
        )
    if not printed.n_sampled:
        raise ParameterError(
            Parameter("n_records"),
            f" is {n_records}, too few to sample epsilon / 56 ="
            f" {budget.epsilon / _PRINTED_DIVISOR:.3g} of them; give more records or use 'tight'.",
        )
    stream = bassily_noise(printed.inner, n_queries, unstable)
    event = Sampled(
        stream=stream,
        sampled=printed.n_sampled,
        out_of=n_records,
        relation="replace-one",
        relabel_epsilon=1.0,
    )
    if not delta_upper([event], budget.epsilon) <= budget.delta:
        raise ParameterError(
            f"calibration 'paper' is not certified for epsilon {budget.epsilon:g}, delta"
            f" {budget.delta:g} with ",
            Parameter("max_abstentions"),
            f" {unstable}; use 'tight'.",
        )
    return event
