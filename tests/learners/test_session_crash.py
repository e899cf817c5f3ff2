"""A labelling session under kill -9: paid once, every returned answer on the books, none beyond
the plan."""

import os
from pathlib import Path

import pytest
from session_victim import Books, statements

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def check_books(found: Books) -> None:
    assert found.other_exits == []
    # what left the house is on the books, word for word
    assert found.wrong == found.denied_but_stored == 0
    assert found.used == found.stored == found.distinct <= found.planned
    assert found.answers >= found.stored
    assert found.entries == 1
    assert found.spent == found.price
    if found.most_abstentions is None:
        assert found.left == found.planned - found.used
    else:
        assert found.abstained <= found.most_abstentions
        stopped = found.abstained == found.most_abstentions
        assert stopped <= found.ends_with_abstention
        assert found.left == (0 if stopped else found.planned - found.used)


def test_kill_at_every_write_of_an_ask_loses_nothing(tmp_path: Path) -> None:
    found = statements(tmp_path, "sparse", 2)
    check_books(found)
    assert found.kills >= 24  # as many steps whatever the noise says
    assert found.used == 3


@pytest.mark.slow
@pytest.mark.parametrize("plan", ["gaussian", "sparse"])
def test_kill_at_every_write_until_the_plan_ends(tmp_path: Path, plan: str) -> None:
    found = statements(tmp_path, plan, 7)
    check_books(found)
    assert found.left == 0
