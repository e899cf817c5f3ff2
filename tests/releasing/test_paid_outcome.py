"""What is bought to set something by: priced before it is drawn, stored, named on the
certificate."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import secretballot as sb
from made_events import json_of
from noisy_plans import calibrated, released
from secretballot.core.private import Scores
from secretballot.core.releasing import AnswerStream
from secretballot.core.types import Guarantee
from secretballot.releasing import choose_by_scores, reserve_choice
from secretballot.report.certificate import choice_fields

RECORD = Guarantee(unit="record", relation="add-remove")
BUDGET = sb.PrivacyBudget(1.0, 1e-6)
ONES = np.arange(0, 251, 10)
VOTES = np.column_stack([250 - ONES, ONES])
RIGHT = np.arange(40)[:, None] < np.array([10, 30, 20])
LABEL: Any = {"unit": "label", "relation": "replace-one"}
REPLACE = {"unit": "record", "relation": "replace-one"}


@pytest.fixture
def counts() -> sb.Votes:
    return sb.votes_of_counts(VOTES)


def _stability(ledger: sb.Ledger, **settings: Any) -> sb.Released:
    counts = sb.votes_of_counts(VOTES)
    return sb.estimate_stability(counts, ledger, **{"fraction": 0.5, "epsilon": 0.2, **settings})


def _scored(ledger: sb.Ledger, **settings: Any) -> sb.Released:
    return choose_by_scores(
        lambda: Scores.of_candidates(RIGHT.sum(axis=0), RECORD),
        3,
        ledger,
        **{"epsilon": 0.2, **settings},
    )


@pytest.mark.parametrize("buy", [_stability, _scored])
def test_it_is_paid_once_at_its_price_and_another_question_is_refused(
    buy: Callable[..., sb.Released], ledger: sb.Ledger
) -> None:
    choice = buy(ledger, purpose="a test", request="one")
    (entry,) = ledger.history()
    assert (entry.epsilon, entry.delta, entry.state) == (0.2, 0.0, "committed")
    assert (choice.account["reservation"], choice.purpose) == (entry.id, "a test")
    assert choice.event.epsilon <= 0.2
    again = buy(sb.Ledger.open_existing(ledger.path), purpose="a test", request="one")
    assert choice_fields(again) == choice_fields(choice)
    with pytest.raises(sb.ParameterError, match="begun with other"):
        buy(ledger, request="one", epsilon=0.1)
    for bad in ({"epsilon": 0.0}, {"epsilon": float("nan")}, {"epsilon": 1e9}, {"request": " "}):
        with pytest.raises(sb.SecretBallotError):
            buy(ledger, **bad)
    assert len(ledger.history()) == 1


def test_scores_by_another_unit_or_relation_are_refused(ledger: sb.Ledger) -> None:
    """A user's three records move a count of records by three; one record may move scores by user
    both ways, and one that is replaced moves them as well."""

    def account(**terms: str) -> sb.Ledger:
        return sb.Ledger.in_memory(dataset="d", budget=BUDGET, **terms)

    users, replaced = account(unit="user"), account(relation="replace-one")
    promises = {"unit": "user", "relation": "add-remove"}, REPLACE, LABEL
    by_user, by_record, by_label = (
        Scores.of_candidates([9, 8], Guarantee(**promise)) for promise in promises
    )

    def chosen(scores: Scores, where: sb.Ledger, declaration: Any = None, n: int = 2) -> Any:
        terms = {"epsilon": 0.1, "declaration": declaration}
        return choose_by_scores(lambda: scores, n, where, **terms).shape.guarantee

    for where, scores, declaration, word in (
        (users, Scores.of_candidates([9, 8], RECORD), {"unit": "user"}, "not of the shape"),
        (ledger, by_user, {"unit": "record"}, "not of the shape"),
        (replaced, Scores.of_candidates([9, 8], RECORD), REPLACE, "not of the shape"),
        (replaced, by_record, None, "replace-one"),
    ):
        with pytest.raises((sb.ParameterError, sb.LedgerError), match=word):
            chosen(scores, where, declaration)
        assert where.history() == []
    with pytest.raises(sb.ParameterError, match="not one for each candidate"):
        chosen(by_record, replaced, REPLACE, 4)
    assert chosen(by_user, users, {"unit": "user"}).unit == "user"
    assert chosen(by_record, account(relation="replace-one"), REPLACE).relation == "replace-one"
    assert chosen(by_label, account(**LABEL), LABEL).unit == "label"


def test_names_go_with_the_request(ledger: sb.Ledger) -> None:
    choice = _scored(ledger, names=["a", "b", "c"], request="one")
    assert choice.public["candidates"] == ["a", "b", "c"]
    with pytest.raises(sb.ParameterError, match="begun with other"):
        _scored(ledger, names=["b", "a", "c"], request="one")
    for names in (["a", "b"], ["a", "b", "b"], ["a", "b", 3]):
        with pytest.raises(sb.ParameterError, match="one string for each of the 3"):
            _scored(ledger, names=names)


def test_a_release_names_what_it_was_set_by_and_verifies(
    counts: sb.Votes, ledger: sb.Ledger
) -> None:
    choice = _stability(ledger)
    terms = calibrated(sb.PrivacyBudget(0.8, 1e-6), 26, n_teachers=250)
    certificate = released(counts, terms, ledger, choices=[choice]).certificate
    assert sb.verify_certificate(certificate).ok
    assert certificate["choices"] == [choice_fields(choice)]
    assert certificate["composition"]["spent_after"] == {"epsilon": 1.0, "delta": 1e-6}
    for change in (
        {"epsilon": 0.1},
        {"events": [{**json_of(choice.event), "epsilon": 0.3}]},
        {"reservation": 2},
    ):
        forged = {**certificate, "choices": [{**certificate["choices"][0], **change}]}
        assert not sb.verify_certificate(forged).ok


def test_a_release_takes_choices_of_its_own_ledger_and_promise_alone(
    counts: sb.Votes, ledger: sb.Ledger
) -> None:
    other = sb.Ledger.in_memory(dataset="another", budget=BUDGET)
    foreign = sb.estimate_stability(counts, other, fraction=0.5, epsilon=0.1)
    terms = calibrated(sb.PrivacyBudget(0.5, 1e-7), 3, n_teachers=250)
    with pytest.raises(sb.ParameterError, match="paid from another ledger"):
        released(counts, terms, ledger, queries=[0, 1, 2], choices=[foreign])
    own = sb.estimate_stability(counts, ledger, fraction=0.5, epsilon=0.1)
    by_user = {"unit": "user", "relation": "add-remove"}
    with pytest.raises(
        sb.ParameterError,
        match=r"paid for by record under 'add-remove', and the release is by user",
    ):
        released(
            sb.votes_of_counts(VOTES, **by_user),
            terms,
            ledger,
            queries=[0, 1, 2],
            choices=[own],
            declaration=by_user,
        )
    assert [entry.epsilon for entry in ledger.history()] == [0.1]
    assert sb.verify_certificate(
        released(counts, terms, ledger, choices=[own], queries=[0]).certificate
    ).ok


def test_it_is_paid_before_it_is_drawn_and_drawn_once(tmp_path: Path):
    ledger = sb.Ledger(tmp_path / "l.sqlite", dataset="d", budget=BUDGET, relation="replace-one")
    made = Guarantee(**REPLACE)

    def reserved() -> AnswerStream:
        return reserve_choice(ledger, epsilon=0.5, request="r", guarantee=made, purpose="which")

    bought = reserved()
    assert (ledger.spent().epsilon, bought.released().questions) == (0.5, ())
    assert ledger.history()[0].state == "reserved"
    answers = bought.answer(Scores.of_candidates([0, 10_000, 0], made), [b"points"])
    assert (answers.values.tolist(), answers.left) == ([[1]], 0)
    again = reserved()
    # other scores and points no longer matter
    other = Scores.of_candidates([10_000, 0], made)
    assert not again.answer(other, [b"other"]).given.any()
    for one in (again.released(), bought.released()):
        assert (one.questions, one.values.tolist()) == ((b"points",), [[1]])
    bought.close()
    assert (ledger.spent().epsilon, len(ledger.history())) == (0.5, 1)
    assert ledger.history()[0].state == "committed"
    assert bought.released().account["spent_after"] == {"epsilon": 0.5, "delta": 0.0}
