"""Free text by public information alone: words, hashed words."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from secretballot.data.columns import HashedTextColumn, is_word, words_in
from secretballot.data.reading import read_table
from secretballot.data.schema import Schema

WORDS = ["pain", "fever", "cough", "rash", "since", "today", "knee", "no", "some", "left"]
RNG = np.random.default_rng(5)
NOTES = [" ".join(RNG.choice(WORDS, size=RNG.integers(2, 8))) for _ in range(200)]
PUBLIC = pd.DataFrame({"note": NOTES})
HASHED = {"kind": "text", "encoding": "hashed", "width": 32}
FEW = {"kind": "text", "width": 6}


def schema_of(spec: Any, public: pd.DataFrame | None = PUBLIC) -> Schema:
    return Schema.from_json({"columns": {"note": spec}}, public=public)


def test_hashed_words_need_no_public_table_and_are_the_same_everywhere() -> None:
    column = HashedTextColumn(name="note")
    # BLAKE2b of eight bytes, big-endian, modulo the width: promised, since students rest on it
    assert column.places_of("Pain, pain!") == {789}
    assert column.places_of("knee pain") == {789, 155}
    assert schema_of(HASHED, public=None) == schema_of(HASHED)


def test_a_schema_is_complete_and_the_same_in_two_processes() -> None:
    declared = {"columns": {"a": FEW, "b": HASHED, "c": {"kind": "text", "width": 4}}}
    frame = pd.DataFrame({"a": NOTES, "b": NOTES, "c": NOTES})
    schema = Schema.from_json(declared, public=frame)
    text = json.dumps(schema.to_json())
    assert Schema.from_json(json.loads(text)) == schema
    assert [len(one.feature_names) for one in schema.columns] == [7, 33, 5]
    program = (
        "import hashlib, json, sys, pandas as pd\n"
        "from secretballot.data.schema import Schema\n"
        "declared, cells = json.loads(sys.stdin.read())\n"
        "schema = Schema.from_json(declared, public=pd.DataFrame(cells))\n"
        "matrix = schema.encode(pd.DataFrame(cells))\n"
        "print(json.dumps(schema.to_json()), hashlib.sha256(matrix.tobytes()).hexdigest())"
    )
    there = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps([declared, dict.fromkeys("abc", NOTES)]),
        capture_output=True,
        text=True,
        check=True,
        # this process has another seed, drawn at random
        env={"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)},
    )
    digest = hashlib.sha256(schema.encode(frame).tobytes()).hexdigest()
    assert there.stdout == f"{text} {digest}\n"


def test_no_long_text_in_a_csv_file_stops_a_run(tmp_path: Path) -> None:
    notes = ["pain today", "pain " * 60_000, "no pain"]
    pd.DataFrame({"note": notes}).to_csv(tmp_path / "t.csv", index=False)
    encoded = schema_of(HASHED).encode(read_table(tmp_path / "t.csv"))
    assert encoded.tobytes() == schema_of(HASHED).encode(pd.DataFrame({"note": notes})).tobytes()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Caf\u00e9 cafe\u0301", {"caf\u00e9"}),  # composed and not
        ("\u0939\u093f\u0928\u094d\u0926\u0940 \u092d\u093e\u0937\u093e", 2),
        ("\u0130stanbul_1", {"i\u0307stanbul", "1"}),
        ("\u0301a", {"a"}),  # a mark without a letter before it
    ],
)
def test_marks_belong_to_their_letters(text: str, words: set[str] | int) -> None:
    found = words_in(text)
    assert found == words if isinstance(words, set) else len(found) == words
    assert all(is_word(word) for word in found)
