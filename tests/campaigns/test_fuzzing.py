"""The fuzzing campaign in small: every target is read, rules are kept, and a broken rule is
seen."""

import json
import os
import time
from collections import Counter
from pathlib import Path

import pytest
from campaigns.fuzzing.__main__ import LONGEST_SILENCE, block_report, report_of_death
from campaigns.fuzzing.child import inputs_read
from campaigns.fuzzing.edits import edited_bytes, edited_document, edited_rows
from campaigns.fuzzing.rules import LONGEST_SECONDS, MARKER, Answer, breach
from campaigns.fuzzing.targets import TARGETS

ALLOWED = (0, 2)


@pytest.mark.parametrize("name", TARGETS)
def test_hostile_inputs_are_read_or_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    codes, breaches = inputs_read(name, 6, 0, tmp_path)
    assert not breaches
    assert codes.total() >= 6


def test_every_target_that_can_be_read_is_read_sometimes(tmp_path: Path) -> None:
    codes: Counter[str] = Counter()
    for name in ("private-csv", "counts-npy", "ledger"):
        (tmp_path / name).mkdir()
        codes += inputs_read(name, 25, 1, tmp_path / name)[0]
    assert codes["0"] > 5
    assert codes["2"] > 5


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (Answer(1, "a defect"), "exit code 1"),
        (Answer(2, f"the cell {MARKER} is no number"), "quoted"),
        (Answer(2, f"the cell {MARKER.lower()} is no number"), "quoted"),
        (Answer(2, "a \x1b[31mred\x1b[0m sentence"), "control"),
        (Answer(2, "a name with \ud800"), "control"),
        (Answer(2, "long " * 200), "more than"),
        (Answer(0, "", LONGEST_SECONDS + 1), "took more"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_broken_rule_is_seen(answer: Answer, word: str) -> None:
    rule = breach(answer, ALLOWED)
    assert rule is not None
    assert word in rule


def test_an_answer_in_order_breaks_no_rule_and_a_published_file_may_be_quoted() -> None:
    assert breach(Answer(2, "The file is empty.\nGive another."), ALLOWED) is None
    said = Answer(4, f"The field price is {MARKER!r}; it must be a JSON object.")
    assert breach(said, (0, 4)) is not None
    assert breach(said, (0, 4), private=False) is None


def test_edits_change_what_they_name() -> None:
    document = {"a": [1, 2], "b": {"c": 3}}
    assert edited_document(document, [(2, "set", None)]) == {"a": [None, 2], "b": {"c": 3}}
    assert edited_document(document, [(1, "remove", None)]) == {"a": [1, 2]}
    assert document == {"a": [1, 2], "b": {"c": 3}}
    assert edited_rows([["a", "b"], ["1", "2"]], [(1, 1, "set", "x")]) == [["a", "b"], ["1", "x"]]
    assert edited_rows([["a", "b"], ["1", "2"]], [(0, 0, "drop row", "")]) == [["1", "2"]]
    assert edited_bytes(b"abcdef", [(2, "cut", b"x")]) == b"ab"
    assert edited_bytes(b"abcdef", [(0, "flip", b"\x01")]) == b"`bcdef"
    assert json.loads(json.dumps(edited_document([1], [(0, "nest", None)]))) == [[[[1]]]]
    twice = {"a": []}
    json.dumps(
        edited_document(
            {"x": 1, "y": []}, [(0, "set", twice), (1, "append", twice), (2, "append", twice)]
        )
    )


def test_a_process_that_died_before_its_first_input_is_reported(tmp_path: Path) -> None:
    for case in (None, b""):  # no file yet, or one that was opened and not written
        if case is not None:
            (tmp_path / "run-0.case").write_bytes(case)
        (tmp_path / "run-0.err").write_bytes(b"killed")
        report = report_of_death(-9, tmp_path / "run-0")
        assert report["breaches"] == {"the process died: SIGKILL: killed": "nothing yet"}


@pytest.mark.slow
def test_a_block_whose_process_died_is_read_again(tmp_path: Path) -> None:
    left = tmp_path / "run-0.case"
    left.write_bytes(b"")
    long_ago = time.time() - 10 * LONGEST_SILENCE
    os.utime(left, (long_ago, long_ago))
    assert block_report("run", 8, 0, tmp_path)["inputs"] == 8
