"""The words of a free text, one cell at a time, and a vocabulary from public texts."""

import re
from collections import Counter
from collections.abc import Iterable

__all__ = ["MOST_WORDS", "frequent_words", "is_word", "words_in"]

#: Words kept of a column of free text, the most frequent ones.
MOST_WORDS = 100
#: A word must stand in so many public cells, or it tells of none but them.
_FEWEST_CELLS = 2
#: A word that stands in a larger share of the public cells tells them from no others.
_LARGEST_SHARE = 0.95
_WORD = re.compile(r"[^\W_]+")


def words_in(text: str) -> set[str]:
    """Return the words of a text, each once: letters and digits that stand together, without regard
    to case."""
    return set(_WORD.findall(text.casefold()))


def is_word(text: str) -> bool:
    """Return whether a string is one word, as `words_in` finds it."""
    return words_in(text) == {text}


def frequent_words(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the words that stand in most of some public texts, sorted, at most `MOST_WORDS`."""
    listed = list(texts)
    counts = Counter(word for text in listed for word in words_in(text) if len(word) > 1)
    kept = [
        word
        for word, count in counts.items()
        if count >= _FEWEST_CELLS and count <= _LARGEST_SHARE * len(listed)
    ]
    return tuple(sorted(sorted(kept, key=lambda word: (-counts[word], word))[:MOST_WORDS]))
