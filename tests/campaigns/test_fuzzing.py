"""The fuzzing campaign in small: every parser is read, rules are kept, and a broken rule is
seen."""

from pathlib import Path

import pytest
from campaigns.fuzzing.edits import MARKER
from campaigns.fuzzing.parsers import PARSERS
from campaigns.fuzzing.reading import LONGEST_SECONDS, Answer, breach, inputs_read

#: So that all but a few inputs would be refused, if even genuine ones were.
OFTEN_READ = ("private-csv", "counts-csv", "kinds-csv", "session", "ledger")


@pytest.mark.parametrize("name", PARSERS)
def test_hostile_inputs_are_read_or_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    amount = 40 if name in OFTEN_READ else 6
    counts, faults = inputs_read(name, PARSERS[name], amount, 0, tmp_path)
    assert faults == []
    assert counts.total() == amount
    assert counts["read"] > 2 or name not in OFTEN_READ


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (Answer(1, "a defect"), "exit code 1"),
        (Answer(2, f"the cell {MARKER} is no number"), "quoted"),
        (Answer(2, f"the cell {MARKER.lower()} is no number"), "quoted"),
        (Answer(2, "a sentence", 0.0, MARKER), "quoted"),
        (Answer(2, "a \x1b[31mred\x1b[0m sentence"), "control"),
        (Answer(2, "a name with \ud800"), "control"),
        (Answer(2, "long " * 200), "more than"),
        (Answer(0, "", LONGEST_SECONDS + 1), "took more"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_broken_rule_is_seen(answer: Answer, word: str) -> None:
    assert word in str(breach(answer, PARSERS["schema"]))


def test_an_answer_in_order_breaks_no_rule_and_a_published_file_may_be_quoted() -> None:
    assert breach(Answer(2, "The file is empty.\nGive another."), PARSERS["schema"]) is None
    said = Answer(4, f"The field price is {MARKER!r}; it must be a JSON object.")
    assert breach(said, PARSERS["release"]) is not None
    assert breach(said, PARSERS["certificate"]) is None
