"""Words about cells that nearly fit: what would make them fit, and never a cell."""

import pytest

from secretballot.datasets.near_misses import near_categories, near_classes, near_numbers

INCOMES = ("<=50K", ">50K")
WARDS = ("north", "south", "north-east", "7")


@pytest.mark.parametrize(
    ("texts", "categories", "words"),
    [
        (["<=50K.", ">50K."], INCOMES, "match if a full stop at the end were taken away"),
        (["NORTH", "South"], WARDS, "match if upper and lower case were not told apart"),
        (["NORTH.", '"South."'], WARDS, "match if differences of spelling"),
        (["S", "s."], WARDS, "match if they were written out, or shortened, alike"),
    ],
)
def test_words_say_what_would_make_categories_match(
    texts: list[str], categories: tuple[str, ...], words: str
) -> None:
    near = near_categories(texts * 20, categories)
    assert near is not None
    assert words in near
    assert not any(text in near for text in texts if len(text) > 1)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["1,5", "-2,25"], "a comma were a decimal point"),
        (["1,234,567", "12'000.5"], "commas, spaces or apostrophes between thousands"),
        (["$1,234.50", "$9,000"], "numbers if differences of spelling"),
    ],
)
def test_words_say_what_would_make_numbers(texts: list[str], words: str) -> None:
    near = near_numbers(texts * 20)
    assert near is not None
    assert words in near


def test_what_helps_with_few_cells_is_not_told() -> None:
    strange = ["east", "west", "up", "down"]
    assert near_categories([*strange * 20, "NORTH"], WARDS) is None
    assert near_numbers([*strange * 20, "1,5"]) is None
    # of a handful of cells the words would nearly tell the cells
    assert near_categories(["NORTH"] * 9, WARDS) is None
    assert near_categories(["NORTH"] * 10, WARDS) is not None
    assert near_categories([], WARDS) is None
    assert near_numbers([]) is None


def test_a_clause_about_classes_takes_classes_of_any_type() -> None:
    assert near_classes(["1.", "0."] * 10, [0, 1.0]) == (
        "; they would match if a full stop at the end were taken away"
    )
    assert near_classes(["x"] * 10, [0, 1]) == ""
