"""What attacks by fresh eyes found at the door: each was accepted once."""

import pytest

import secretballot as sb
from made_events import label_event
from noisy_plans import calibrated
from secretballot.exceptions import ParameterError
from secretballot.learners.training.label_stream import LabelStream
from sessions import stream_of

BUDGET = sb.PrivacyBudget(1.0, 1e-6)
COUNTS = [[30, 70], [60, 40]]
VOTES = sb.votes_of_counts(COUNTS)
NOISE = calibrated(sb.PrivacyBudget(0.3, 1e-7), n_queries=2, n_teachers=100)


def made_for(unit: str, neighbours: str) -> sb.Votes:
    return sb.votes_of_counts(COUNTS, unit=unit, neighbours=neighbours)


def account(**more: str) -> sb.Ledger:
    return sb.Ledger.in_memory(dataset="d", budget=BUDGET, **more)


def test_an_answer_that_is_given_whole_spends_all_that_was_reserved() -> None:
    ledger = account(composition="renyi")
    number = ledger.reserve([label_event(60.0, 100, 100)], BUDGET, request="r", purpose="")
    spent = ledger.spent()
    with pytest.raises(ParameterError, match="used goes with parts"):
        ledger.commit(number, b"a hundred labels", used=[])
    ledger.commit(number, b"a hundred labels")
    assert ledger.spent() == spent


def test_a_stream_takes_votes_of_its_own_promise_alone() -> None:
    def stream() -> LabelStream:
        return stream_of(NOISE, account(), VOTES.classes, 100)

    for made in (made_for("record", "replace-one"), made_for("user", "add-remove")):
        with pytest.raises(ParameterError, match=r"another unit, relation.*Nothing was answered"):
            stream().answer(made, [b"1", b"2"])
    assert stream().answer(VOTES, [b"1", b"2"]).given.all()


def test_a_record_that_is_replaced_may_be_of_two_users() -> None:
    declaration = {"unit": "record", "neighbours": "replace-one"}
    ledger = account(unit="record", neighbours="replace-one")
    with pytest.raises(ParameterError, match="made for unit 'user'"):
        sb.release(made_for("user", "replace-one"), NOISE, ledger, declaration=declaration)
    assert ledger.spent().epsilon == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"points_sha256": "zz"}, "points_sha256 is 'zz'"),
        ({"purpose": "x" * 20_000}, "purpose has a string of 20000"),
        ({"unit": "user", "declaration": {"unit": "user", "unit_column": ""}}, "unit_column is ''"),
        ({"classes": ["a", "x" * 100_000]}, "classes has a string of 100000"),
        ({"classes": [2**60, 1]}, "an integer beyond 2"),
    ],
)
def test_what_no_verifier_would_read_is_refused_before_it_is_paid(
    settings: dict[str, object], words: str
) -> None:
    made = {name: settings[name] for name in ("classes", "unit") if name in settings}
    votes = sb.votes_of_counts([[30, 70], [60, 40]], **made)  # type: ignore[arg-type]
    settings = {name: value for name, value in settings.items() if name not in made}
    ledger = account()
    with pytest.raises(ParameterError, match=words) as refused:
        sb.release(votes, NOISE, ledger, **settings)  # type: ignore[arg-type]
    assert "Nothing was spent." in str(refused.value)
    assert ledger.spent().epsilon == 0


@pytest.mark.parametrize("value", [float("inf"), float("nan"), "\ud800"])
def test_classes_that_no_file_can_hold_are_refused(value: object) -> None:
    other = "a" if isinstance(value, str) else 1.0
    with pytest.raises(ParameterError, match="certificates and tables can hold"):
        sb.votes_of_counts([[30, 70]], classes=[other, value])


def test_a_request_repeats_one_question_about_one_promise() -> None:
    ledger = account()
    first = sb.release(VOTES, NOISE, ledger, request="r", points_sha256="0" * 64)
    again = sb.release(VOTES, NOISE, ledger, request="r", points_sha256="0" * 64)
    assert again.labels.tolist() == first.labels.tolist()
    replaced = {"neighbours": "replace-one"}
    for votes, other in (
        (VOTES, {"points_sha256": "1" * 64}),
        (made_for("record", "replace-one"), {"points_sha256": "0" * 64, "declaration": replaced}),
    ):
        with pytest.raises(ParameterError, match="other terms"):
            sb.release(votes, NOISE, ledger, request="r", **other)  # type: ignore[arg-type]
