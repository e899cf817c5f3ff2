"""What a run asks before it spends: each question where it must, and none where it need not."""

import math
import warnings
from typing import get_args

import pytest

from noisy_plans import priced
from secretballot.accounting import PrivacyBudget, sparse_vector
from secretballot.accounting.recipes import answer_chance
from secretballot.exceptions import ParameterError
from secretballot.runs.methods import (
    _cautions_of_noise,
    _cautions_of_records,
    _cautions_of_teachers,
    _settle_questions,
    _warnings_dropped,
    cautions_of_price,
)
from secretballot.runs.questions import Caution, Watch
from secretballot.runs.spec import RunSpec, _Question

USUAL = PrivacyBudget(1.0, 1e-6)


@pytest.mark.parametrize(
    ("epsilon", "delta", "records", "names"),
    [
        (10.0, 1e-3, None, []),
        (10.01, 1e-6, None, ["epsilon"]),
        (50.0, 0.5, None, ["epsilon", "delta"]),
        (1.0, 0.0011, 300, ["delta"]),
        (1.0, 1e-4, 10_000, ["delta"]),
        (1.0, 1e-4, 9_999, []),
        (1.0, 1e-6, 105, ["records"]),
        (1.0, 1e-6, 107, []),
        (0.1, 1e-6, 500, ["records"]),
        (1.0, 0.0, 24, ["records"]),
        (1.0, 0.0, 25, []),
    ],
)
def test_a_price_is_asked_about_by_public_numbers(epsilon, delta, records, names):
    price = PrivacyBudget(epsilon, delta)
    found = list(cautions_of_price(price))
    if records is not None:
        found += _cautions_of_records(price, records, 10, "records")
    assert [caution.name for caution in found] == names
    assert not any(caution.private for caution in found)
    assert set(names) <= set(get_args(_Question))


@pytest.mark.parametrize(
    ("delta", "n_units", "teachers", "names"),
    [
        (1e-6, 20, None, ["records"]),
        (1e-6, 20, 50, ["records", "teachers"]),
        (1e-6, 200, 250, ["teachers"]),
        (1e-6, 250, 250, []),
        (1e-3, 1_000, None, ["delta"]),
    ],
)
def test_how_many_records_there_are_is_asked_of_the_curator_alone(delta, n_units, teachers, names):
    found = list(_cautions_of_records(PrivacyBudget(1.0, delta), None, n_units, "records"))
    found += _cautions_of_teachers(teachers, n_units)
    assert [caution.name for caution in found] == names
    assert all(caution.private for caution in found)
    assert not any(str(n_units) in caution.text for caution in found if n_units != teachers)
    persons = _cautions_of_records(PrivacyBudget(1.0, delta), None, n_units, "persons")
    assert all("private persons" in caution.text for caution in persons)


def test_a_sparse_vector_that_would_hardly_answer_is_asked_about():
    mechanism = sparse_vector(USUAL, 1000, max_abstentions=1)
    width = mechanism.threshold
    few, many = 2 * width, 4 * width
    assert answer_chance(mechanism, math.ceil(few / 2) - 1) < 0.5
    for n_teachers, usual, count in ((few, 0, 1), (many, 0, 0), (many, 1001, 1)):
        terms = priced(mechanism, 1000, n_teachers, budget=USUAL)
        asked = [caution.name for caution in _cautions_of_noise(terms, usual)]
        assert asked == ["noise"] * count


LARGE, FEW = Caution("epsilon", "epsilon is large."), Caution("records", "few.", private=True)
TOTAL = Caution("total", "no account exists.")


@pytest.mark.parametrize("confirm", [(), ("delta",), ("epsilon",), ("records",)])
def test_all_open_questions_come_in_one_list_and_each_name_answers_its_own(confirm):
    left = [one for one in (LARGE, FEW) if one.name not in confirm]
    with pytest.raises(ParameterError) as raised:
        _settle_questions([LARGE, FEW, LARGE], confirm, Watch())
    text = str(raised.value)
    count = "2 questions" if len(left) == 2 else "1 question"
    assert text.startswith(f"{count} before anything is spent: ")
    assert text.endswith(". Nothing was spent.")
    for one in (LARGE, FEW):
        assert (f"{one.text.rstrip('.')} [confirm={one.name!r}]" in text) == (one in left)


def test_what_is_confirmed_is_noted_and_a_total_is_no_yes():
    watch = Watch()
    assert _settle_questions([LARGE, FEW], ("epsilon", "records"), watch) is None
    told = {note.text: note.private for note in watch.notes}
    assert told == {"epsilon is large.": False, "few.": True}
    with pytest.raises(ParameterError, match=r"no account exists \[total='E,D'\]"):
        _settle_questions([TOTAL], (), Watch())
    answered = Watch(ask=lambda asked: dict.fromkeys(asked, "4,1e-5"))
    assert _settle_questions([TOTAL], (), answered) == "4,1e-5"
    with pytest.raises(ParameterError, match="confirm is 'total'; it must be 'epsilon'"):
        RunSpec.read(epsilon=1, delta=1e-6, confirm=("epsilon", "total"))


def test_somebody_who_is_there_is_asked_all_at_once():
    heard = []

    def answer(asked):
        heard.append([one.name for one in asked])
        return {one: "yes" for one in asked if one.name == "epsilon"}

    with pytest.raises(ParameterError, match=r"^1 question before .* \[confirm='records'\]"):
        _settle_questions([LARGE, FEW, LARGE], (), Watch(ask=answer))
    assert heard == [["epsilon", "records"]]


def test_a_loud_learner_is_not_heard():
    with warnings.catch_warnings(record=True) as heard:
        with _warnings_dropped():
            # as a library does that wants to be heard whatever its user filters
            warnings.simplefilter("always")
            warnings.warn("a shard of 60 rows begins with 42", UserWarning, stacklevel=1)
        assert not heard
