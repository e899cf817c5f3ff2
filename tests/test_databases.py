"""The URL of a database: what is told to the driver, and that its passwords are shown nowhere."""

import copy
import pickle

import pytest

from secretballot.core.ledger.urls import DatabasePlace, file_or_database, is_database
from secretballot.exceptions import ParameterError

SECRET = "hunter2"


def test_words_are_those_that_the_driver_knows() -> None:
    place = DatabasePlace(
        f"postgresql://asker:{SECRET}@db.example:5433/ledgers?schema=patients&sslmode=verify-full"
    )
    assert place.words == {
        "user": "asker",
        "password": SECRET,
        "host": "db.example",
        "port": "5433",
        "dbname": "ledgers",
        "sslmode": "verify-full",
    }
    assert place.schema == "patients"
    shown = "postgresql://asker@db.example:5433/ledgers?schema=patients&sslmode=verify-full"
    assert str(place) == shown


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://", {}),
        ("postgres://db/ledgers", {"host": "db", "dbname": "ledgers"}),
        ("postgresql://a:@/x?host=/run/pg", {"user": "a", "dbname": "x", "host": "/run/pg"}),
        ("postgresql://%2Frun%2Fpg/x", {"host": "/run/pg", "dbname": "x"}),
        ("postgresql://[::1]:5/x", {"host": "::1", "port": "5", "dbname": "x"}),
        ("postgresql://u:p%40%3A%2F%3F%23@h/x", {"user": "u", "password": "p@:/?#"}),
    ],
)
def test_urls_of_many_forms_are_read(url: str, words: dict[str, str]) -> None:
    assert words.items() <= DatabasePlace(url).words.items()
    assert DatabasePlace(url).schema == "secretballot"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://asker:{SECRET}@db.example/ledgers?schema=s&sslmode=require",
        f"postgresql://asker@db.example/ledgers?password={SECRET}&sslpassword={SECRET}",
        f"postgresql://:{SECRET}@db.example:1/ledgers",
    ],
)
def test_no_text_of_a_place_has_its_password(url: str) -> None:
    place = DatabasePlace(url)
    assert SECRET in place.words.values()
    for text in (str(place), repr(place), repr(vars(place.__class__))):
        assert SECRET not in text
    assert SECRET.encode() not in pickle.dumps(place)
    again = pickle.loads(pickle.dumps(place))
    assert again == place
    assert hash(again) == hash(place)
    assert SECRET not in again.words.values()
    assert copy.deepcopy(place).words == place.words
    # what is told to reopen it keeps everything else, how safe the way there is among it
    assert {**place.words, "password": "", "sslpassword": ""} == {
        **again.words,
        "password": "",
        "sslpassword": "",
    }


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://u:{SECRET}@x@h/d",
        f"postgresql://u:a/{SECRET}@h/d",
        f"postgresql://u:1/{SECRET}@h/d",
        f"postgresql://u:1?{SECRET}@h/d",
        f"postgresql://u:1?{SECRET}=1",
        f"postgresql://u:{SECRET}#x@h/d",
        f"postgresql://u:{SECRET}/d",
        f"postgresql://u:{SECRET} x@h/d",
        f"postgresql://u:{SECRET}\n@h/d",
        f"postgresql://h/d?password={SECRET}&password={SECRET}",
        f"postgresql://h/d?schema={SECRET}-x",
        f"postgresql://h/d?schema=pg_{SECRET}",
        f"postgresql://[{SECRET}]/d",
        "postgresql://one,two:7/d",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_without_a_piece_of_it(url: str) -> None:
    with pytest.raises(ParameterError, match="cannot be read") as error:
        DatabasePlace(url)
    assert SECRET not in str(error.value)


def test_only_urls_of_postgresql_are_databases(tmp_path: object) -> None:
    assert is_database("postgresql://h/d")
    assert is_database(DatabasePlace("postgresql://h/d"))
    for other in ("ledger.sqlite", "mysql://h/d", "postgresql:/h", tmp_path, None):
        assert not is_database(other)
    assert str(file_or_database("a/ledger.sqlite")) == "a/ledger.sqlite"
