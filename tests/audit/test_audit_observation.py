"""What can be seen of a folder: names, sizes, modes, links, and the inside of every kind of
file."""

import json
import os

import numpy as np
import pytest

from secretballot.audit.observation import observed_files


def seen(folder, name, content):
    """The fields of a folder with one file."""
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return observed_files(folder)


def test_names_sizes_modes_links_and_order_are_fields(tmp_path):
    (tmp_path / "b.txt").write_text("x")
    os.utime(tmp_path / "b.txt", (1, 1))
    first = seen(tmp_path, "a.txt", "y")
    assert first["(folder):names"] == "a.txt\nb.txt"
    assert first["(folder):order written"] == "b.txt\na.txt"
    assert (first["a.txt:size"], first["a.txt:links"]) == (1, 1)
    (tmp_path / "a.txt").chmod(0o600)
    os.link(tmp_path / "a.txt", tmp_path.parent / "elsewhere")
    second = observed_files(tmp_path)
    assert second["a.txt:links"] == 2
    assert second["a.txt:mode"] != first["a.txt:mode"]
    assert observed_files(tmp_path / "none") == {"(folder)": "missing"}


def test_a_link_is_seen_and_not_followed(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("12345")
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "link").symlink_to("../secret")
    fields = observed_files(tmp_path / "release")
    assert fields["link:target"].endswith("secret")
    assert "link:digest" not in fields


def test_json_leaves_keep_their_place_and_their_type(tmp_path):
    fields = seen(
        tmp_path,
        "a.json",
        json.dumps({"x": [1, 2.5, "id 140573549004720"], "y": {"z": None, "t": True}}),
    )
    assert (fields["a.json:$.x[0]"], fields["a.json:$.x[1]"], fields["a.json:$.y.z"]) == (
        1,
        2.5,
        "None",
    )
    assert fields["a.json:$.x[2]:integer 0"] == 140573549004720
    assert fields["a.json:$.y.t"] == "True"


@pytest.mark.parametrize("content", [b"{ no json", b"\xff\xfe\x00", b""])
def test_what_is_not_what_it_looks_like_still_shows(tmp_path, content):
    first = seen(tmp_path, "file.csv", content)
    second = seen(tmp_path, "file.csv", content + b"!")
    assert first["file.csv:digest"] != second["file.csv:digest"]
    assert first["file.csv:size"] + 1 == second["file.csv:size"]


def test_a_change_anywhere_in_a_large_binary_moves_one_block(tmp_path):
    content = bytearray(np.random.default_rng(0).bytes(5000))
    first = seen(tmp_path, "model.onnx", bytes(content))
    content[1000] ^= 1
    second = seen(tmp_path, "model.onnx", bytes(content))
    assert {name for name in first if first[name] != second[name]} >= {
        "model.onnx:digest",
        "model.onnx:bytes from 960",
    }
    assert first["model.onnx:bytes from 0"] == second["model.onnx:bytes from 0"]
