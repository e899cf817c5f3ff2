"""Words about cells that nearly fit: what would make them fit, and never a cell."""

import pytest

from secretballot.data.near_misses import near_categories, near_numbers

INCOMES = ("<=50K", ">50K")
WARDS = ("north", "south", "north-east", "7")


@pytest.mark.parametrize(
    ("texts", "categories", "words"),
    [
        (["<=50K.", ">50K."], INCOMES, "match if a full stop at the end were taken away"),
        (["NORTH", "South"], WARDS, "match if upper and lower case were not distinguished"),
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


def test_what_helps_with_few_cells_is_not_told() -> None:
    strange = ["east", "west", "up", "down"]
    assert near_categories([*strange * 20, "NORTH"], WARDS) is None
    assert near_numbers([*strange * 20, "1,5"]) is None
    # of a handful of cells the words would nearly tell the cells
    assert near_categories(["NORTH"] * 9, WARDS) is None
    assert near_categories(["NORTH"] * 10, WARDS) is not None
    assert near_categories([], WARDS) is None
    assert near_numbers([]) is None
