"""Bodies that are made to take more than they show: a few bytes, and the machine is full."""

import io
import json
import logging
import threading

import numpy as np
import pytest
import sklearn
from served_places import QUESTIONS, TestClient, made_place

from secretballot.foreign_code import isolated
from secretballot.service import app
from secretballot.service.points import ARROW, PARQUET, points_in
from secretballot.service.problems import ProblemError, log_trouble

FRAME = {"kind": "frame", "columns": [["site", "str", None]]}
LONG, MANY = "x" * 100_000, 5000  # half a gigabyte, once every cell is written out


def stream(column, compression=None, **more):
    import pyarrow as pa

    table, sink = pa.table({"site": column, **more}), pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def parquet(column, other=None, **options):
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    table = {"site": column} if other is None else {"site": column, "other": other}
    pq.write_table(pa.table(table), sink, **options)
    return sink.getvalue()


def dictionary_of(value, n):
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, dtype=np.int8)), pa.array([value]))


def views_of(value, n):
    """Return n views of one text."""
    import pyarrow as pa

    return pa.repeat(pa.scalar(value, pa.string_view()), n)


@pytest.mark.parametrize(
    ("content", "media_type", "kind"),
    [
        (lambda: stream(dictionary_of(LONG, MANY)), ARROW, "too-large"),
        (lambda: stream(views_of(LONG, MANY)), ARROW, "too-large"),
        (lambda: stream(["x" * 9000] * 90, compression="zstd"), ARROW, "wrong-media-type"),
        (
            lambda: stream(dictionary_of("x" * 9000, 90), compression="lz4"),
            ARROW,
            "wrong-media-type",
        ),
        (lambda: parquet(dictionary_of(LONG, MANY)), PARQUET, "too-large"),
        (lambda: parquet(["x" * 9000], compression="zstd"), PARQUET, "wrong-media-type"),
        (
            lambda: parquet([LONG] * 9, use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY"),
            PARQUET,
            "unreadable",
        ),
        (lambda: parquet([[0.0] * 1_000_000]), PARQUET, "wrong-points"),
        (lambda: stream([[0.0] * 9]), ARROW, "unreadable"),
        *(
            (lambda damage=damage, whole=whole: damage(whole(["x"])), kind, "unreadable")
            for whole, kind in ((stream, ARROW), (parquet, PARQUET))
            for damage in (
                lambda _: b"",
                lambda b: b[: len(b) // 2],
                lambda b: b"x" + b,
                lambda b: bytes(len(b)),
            )
        ),
        (lambda: stream(["x"], other=["x"]), ARROW, "wrong-points"),
        (lambda: parquet(["x"], other=["x"]), PARQUET, "wrong-points"),
    ],
)
def test_few_bytes_never_stand_for_very_many(content, media_type, kind):
    pytest.importorskip("pyarrow")
    body = content()
    assert len(body) < 400_000
    with pytest.raises(ProblemError) as refused:
        points_in(body, media_type, FRAME, MANY)
    assert refused.value.kind == kind


def test_columns_may_share_their_text_up_to_a_limit(monkeypatch):
    pa = pytest.importorskip("pyarrow")
    text = pa.array([LONG] * 100)  # ten million bytes
    shared = pa.table({f"c{number}": text for number in range(11)})
    monkeypatch.setattr("secretballot.service.points._arrow_table", lambda *_: shared)
    columns = [[name, "str", None] for name in shared.column_names]
    with pytest.raises(ProblemError) as refused:
        points_in(b"", ARROW, {"kind": "frame", "columns": columns}, MANY)
    assert refused.value.kind == "too-large"


def test_ordinary_dictionaries_views_and_files_are_read():
    pa = pytest.importorskip("pyarrow")
    texts = ["north", None, "south", "north of the fifty-first"]
    bodies = [
        (stream(pa.array(texts)), ARROW),
        (stream(pa.array(texts).dictionary_encode()), ARROW),
        (stream(pa.array(texts, pa.string_view())), ARROW),
        (parquet(texts), PARQUET),
        (parquet(texts, compression="none", use_dictionary=False), PARQUET),
        (parquet(pa.array(texts).dictionary_encode()), PARQUET),
    ]
    for body, kind in bodies:
        frame = points_in(body, kind, FRAME, MANY)
        assert [None if cell != cell else cell for cell in frame["site"].tolist()] == texts


def test_small_tables_are_not_read_on_the_loop(shared_place, monkeypatch):
    """Four kilobytes of a compressed table may be half a gigabyte, and everybody would wait."""
    pa = pytest.importorskip("pyarrow")
    threads = []
    read = app.ServedSession.table

    def noted(*given):
        threads.append(threading.current_thread())
        return read(*given)

    monkeypatch.setattr(app.ServedSession, "table", noted)
    table, sink = pa.table({"a": [1.0], "b": [2.0]}), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    key = {**shared_place.key(), "Content-Type": ARROW}
    with TestClient(app.application(shared_place.settings)) as client:
        content = sink.getvalue().to_pybytes()
        assert client.post(QUESTIONS, content=content, headers=key).status_code == 200
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


def test_half_of_a_surrogate_pair_is_no_text(tmp_path):
    place = made_place(tmp_path, frames=True)
    key = {**place.key(), "Content-Type": "application/json"}
    with TestClient(app.application(place.settings)) as client:
        for cell in (rb'"\ud800"', rb'"\uDC00x"', b'"\xed\xa0\x80"'):
            body = b'{"points": [{"age": 1, "site": ' + cell + b"}]}"
            found = client.post(QUESTIONS, content=body, headers=key)
            assert (found.status_code, found.json()["type"]) == (400, "/problems/unreadable")
        whole = json.dumps({"points": [{"age": 1, "site": "\U0001f33b"}]}).encode()
        assert client.post(QUESTIONS, content=whole, headers=key).status_code == 200


def test_lines_of_the_log_are_written_while_a_teacher_votes(caplog):
    """Learners are silenced for the whole process, and other requests are answered meanwhile."""
    caplog.set_level(logging.INFO)
    with isolated(0, sklearn.get_config()):
        log_trouble(ZeroDivisionError("a private cell"), "defect")
    assert caplog.messages == ["defect: ZeroDivisionError"]
