"""What would make cells fit that do not: another spelling of the same thing, in words and without
any cell.

Nothing here changes how a cell is read. The words are for whoever may see the table.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from itertools import islice

Fold = Callable[[str], str]

#: A share of cells that deserves a sentence.
_MOST = 0.5
#: Of fewer cells the words would come near to revealing their content.
_FEWEST = 10
#: Cells that are looked at; of more, the first ones speak for the rest.
TEXTS_LOOKED_AT = 10_000
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def _without_stop(text: str) -> str:
    return text.rstrip(".").rstrip()


def _with_plain_gaps(text: str) -> str:
    return re.sub(r"[\s_\-]+", " ", text).strip()


def _without_quotes(text: str) -> str:
    return text.strip("\"'`")


def _without_leading_zeros(text: str) -> str:
    return text.lstrip("0") or "0" if text.isdigit() else text


#: Spellings that are not distinguished, with the words for it; the commonest slips first.
_OF_CATEGORIES: tuple[tuple[str, Fold], ...] = (
    ("a full stop at the end were taken away", _without_stop),
    ("upper and lower case were not distinguished", str.casefold),
    ("spaces, hyphens and underscores were not distinguished", _with_plain_gaps),
    ("quotation marks around them were taken away", _without_quotes),
    ("zeros at the beginning were taken away", _without_leading_zeros),
)
_DECIMAL_COMMA = "a comma were a decimal point"
_OF_NUMBERS: tuple[tuple[str, Fold], ...] = (
    (_DECIMAL_COMMA, lambda text: text.replace(",", ".")),
    (
        "commas, spaces or apostrophes between thousands were taken away",
        lambda text: re.sub(r"(?<=\d)[,\s'’](?=\d{3}(\D|$))", "", text),
    ),
    (
        "currency and per cent signs were taken away",
        lambda text: text.strip("$€£¥% \t"),
    ),
    (
        "a unit behind the number were taken away",
        lambda text: re.sub(r"(?<=[\d.])\s*[^\W\d_]+\.?$", "", text),
    ),
    ("quotation marks around them were taken away", _without_quotes),
)


def near_categories(texts: Iterable[str], categories: Sequence[str]) -> str | None:
    """Return what would make most of some texts match, None where nothing known does.

    Parameters
    ----------
    texts : iterable of str
        Cells that are none of the categories.
    categories : sequence of str

    Returns
    -------
    str or None
        Such as "they would match if a full stop at the end were taken away"; no cell is in it.
    """
    counts = Counter(islice(texts, TEXTS_LOOKED_AT))

    def matched(fold: Fold) -> int:
        known = {fold(category) for category in categories}
        return sum(n for text, n in counts.items() if fold(text) in known)

    found = _first_of_most(_OF_CATEGORIES, matched, counts.total())
    if found is not None:
        return f"they would match if {found}"
    begun = sum(n for text, n in counts.items() if _begins_one(text, categories))
    if _is_most(begun, counts.total()):
        return "they would match if they were written out, or shortened, alike"
    return None


def near_numbers(texts: Iterable[str]) -> str | None:
    """Return what would make numbers of most of some texts, None where nothing known does; as
    `near_categories`."""
    counts = Counter(islice(texts, TEXTS_LOOKED_AT))

    def matched(fold: Fold) -> int:
        return sum(n for text, n in counts.items() if _NUMBER.fullmatch(fold(text)))

    found = _first_of_most(_OF_NUMBERS, matched, counts.total())
    return None if found is None else f"they would be numbers if {found}"


def _first_of_most(
    folds: Sequence[tuple[str, Fold]], matched: Callable[[Fold], int], total: int
) -> str | None:
    """Return the words of the first way that helps with most cells, or of all ways together."""
    for words, fold in folds:
        if _is_most(matched(fold), total):
            return words
    # a decimal comma would spoil those between thousands
    together = [fold for words, fold in folds if words != _DECIMAL_COMMA]
    if _is_most(matched(partial(_fold_all, 2 * together)), total):
        return "differences of spelling (such as case, signs or spaces) were taken away"
    return None


def _is_most(found: int, total: int) -> bool:
    return total >= _FEWEST and found > _MOST * total


def _fold_all(folds: Sequence[Fold], text: str) -> str:
    return reduce(lambda held, fold: fold(held), folds, text)


def _begins_one(text: str, categories: Sequence[str]) -> bool:
    """Return whether a text is the beginning of just one category, or just one begins it."""
    short = _without_stop(text).casefold()
    others = [category.casefold() for category in categories if category]
    return bool(short) and (
        sum(other.startswith(short) for other in others) == 1
        or sum(short.startswith(other) for other in others) == 1
    )
