"""`data.encoding`: CSV files in another text encoding than UTF-8, which is declared and never
guessed."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from patients import broken_off, document_of, invoke, words_of_run, write_files

import secretballot as sb
from secretballot.exceptions import DataError, ParameterError

QUIET = ("--set", "exclude=report", "--json")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write_files(tmp_path, 2000)


def rewrite(folder: Path, encoding: str) -> None:
    """Write all tables with letters beyond ASCII, in an encoding."""
    for name in ("private", "public", "test"):
        path = folder / f"{name}.csv"
        text = path.read_text("utf-8").replace("north", "Hörsaal")
        path.write_bytes(text.encode(encoding))


def test_a_run_reads_all_of_its_tables_in_the_declared_encoding(files: Path) -> None:
    encoding = "cp1252"
    rewrite(files, encoding)
    words = words_of_run(files, "--evaluate", str(files / "test.csv"), *QUIET)
    refused = invoke(*words)
    assert refused.exit_code == 2
    sentence = f"is not UTF-8 but reads as {encoding}: convert it or give --encoding {encoding} (a"
    assert f"{sentence} run: --set data.encoding={encoding})." in refused.stderr
    assert "Hörsaal" not in refused.stderr
    assert not (files / "out").exists()
    words += ["--set", f"data.encoding={encoding.upper().replace('-', '_')}"]
    broken_off(*words)
    document = document_of(invoke(*words))
    assert (document["resumed"], document["accuracy"] > 0.7) == (True, True)
    schema = json.loads((files / "out/release/schema.json").read_text())
    assert schema["columns"]["ward"]["categories"] == ["Hörsaal", "south"]
    assert document_of(invoke(*words))["accuracy"] == document["accuracy"]  # a finished run
    # rows of the private file are found in the encoding that the run read it in
    lines = (files / "private.csv").read_text(encoding).splitlines(keepends=True)
    (files / "part.csv").write_text("".join(lines[:200]), "utf-8")
    found = invoke("evaluate", files / "out", files / "part.csv")
    assert "holds rows of the private file" in found.stderr
    # verbs without settings of a run have an option
    assert "--encoding" in invoke("predict", files / "out", files / "test.csv").stderr
    for verb in ("predict", "evaluate"):
        done = invoke(verb, files / "out", files / "test.csv", "--encoding", encoding.upper())
        assert done.exit_code == 0, done.stderr
    refused = invoke("predict", files / "out", files / "test.csv", "--encoding", "utf-16")
    assert (refused.exit_code, "encoding is 'utf-16'" in refused.stderr) == (2, True)


def test_an_encoding_is_one_setting_in_python_and_never_guessed(files: Path) -> None:
    rewrite(files, "utf-8")
    given = {one: files / f"{one}.csv" for one in ("private", "public")}
    given |= {"target": "ill", "classes": "no,yes", "epsilon": 2, "delta": 1e-5, "drop": "patient"}
    given |= {"total": "4,1e-4", "out": files / "out", "exclude": "report"}
    assert sb.RunSpec.read(encoding="latin-1", **given).data.encoding == "iso8859-1"
    for name in ("no-such", "rot13", "", 7, "utf-16", "utf-7", "iso2022_jp", "hz", "iso2022_kr"):
        with pytest.raises(ParameterError, match=r"encoding is .* every line is read by itself"):
            sb.RunSpec.read(encoding=name, **given)
    with pytest.raises(DataError, match=r"public.csv' is not ASCII: convert it\.$"):
        sb.run(sb.RunSpec.read(encoding="ascii", **given))
    assert sb.run(sb.RunSpec.read(encoding="utf8", **given)).method == "record-moments"


@pytest.mark.parametrize(
    "name", ["cp1252", "cp932", "shift_jis", "euc_jp", "euc_kr", "gbk", "gb18030", "big5", "cp949"]
)
def test_no_line_changes_how_the_next_one_is_read(files: Path, name: str) -> None:
    given = {"private": files / "private.csv", "target": "ill", "epsilon": 1, "delta": 1e-6}
    assert sb.RunSpec.read(encoding=name, **given).data.encoding == name
    for first in range(256):
        for second in (*b"a0~{$(\\", *range(128, 256)):
            line = bytes([first, second]) + b"\n"
            with suppress(UnicodeDecodeError):  # which refuses the file
                assert (line + b"ab\n").decode(name) == line.decode(name) + "ab\n"


def test_a_table_is_stored_in_the_encoding_that_is_named(tmp_path: Path) -> None:
    place = tmp_path / "private.csv"
    place.write_text("ward,ill\nHörsaal,yes\nsouth,no\n", "cp1252")
    schema = sb.data.Schema.from_json({"columns": {"ward": ["Hörsaal", "south"]}})
    about: Any = {"schema": schema, "target": "ill", "classes": ["no", "yes"]}
    with pytest.raises(DataError, match="is not UTF-8 but reads as cp1252"):
        sb.store_table(place, tmp_path / "vault", **about)
    (block,) = sb.store_table(place, tmp_path / "vault", encoding="cp1252", **about).blocks()
    assert block.X.tolist() == [[1, 0, 0], [0, 1, 0]]
