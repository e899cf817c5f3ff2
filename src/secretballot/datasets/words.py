"""The words of a free text, one cell at a time, and a vocabulary from public texts."""

import functools
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from secretballot._typing import FloatArray

#: Words kept of a column of free text unless the schema says how many, the most frequent ones.
MOST_WORDS = 300
#: A word must stand in so many public cells, or it tells of none but them.
_FEWEST_CELLS = 2
#: A word that stands in a larger share of the public cells tells them from no others.
_LARGEST_SHARE = 0.95
_WORD = re.compile(r"[^\W_]+")


def folded(text: str) -> str:
    """Return a text as its words are compared: without regard to case, accents composed."""
    return unicodedata.normalize("NFC", text.casefold())


def words_in(text: str) -> set[str]:
    """Return the words of a text, each once: letters and digits that stand together, with their
    combining marks, without regard to case."""
    return set(_listed_words(text))


def _listed_words(text: str) -> list[str]:
    whole = folded(text)
    return (_WORD if whole.isascii() else _marked_word()).findall(whole)


@functools.cache
def _marked_word() -> re.Pattern[str]:
    """Return the pattern of a word whose letters may have marks: many languages write vowels so."""
    every = map(chr, range(sys.maxunicode + 1))
    marks = "".join(one for one in every if unicodedata.category(one).startswith("M"))
    return re.compile(rf"[^\W_](?:[^\W_]|[{marks}])*")


def terms_in(text: str, *, bigrams: bool) -> set[str]:
    """Return the words of a text, each once, and the pairs of words that follow on each other
    where these are wanted, with a space between."""
    words = _listed_words(text)
    pairs = map(" ".join, pairwise(words)) if bigrams else ()
    return {*words, *pairs}


def is_word(text: str) -> bool:
    """Return whether a string is one word, as `words_in` finds it."""
    return words_in(text) == {text}


def frequent_words(texts: Iterable[str], most: int = MOST_WORDS) -> tuple[str, ...]:
    """Return the words that stand in most of some public texts, sorted, at most so many."""
    listed = list(texts)
    counts = Counter(word for text in listed for word in words_in(text) if len(word) > 1)
    kept = [
        word
        for word, count in counts.items()
        if count >= _FEWEST_CELLS and count <= _LARGEST_SHARE * len(listed)
    ]
    return tuple(sorted(sorted(kept, key=lambda word: (-counts[word], word))[:most]))


def word_weights(words: Sequence[str], texts: Iterable[str]) -> FloatArray:
    """Return how much each word tells, by the share of some public texts that have it.

    Inverse document frequency, ln((1 + texts) / (1 + texts with the word)) + 1, as scikit-learn's
    TfidfVectorizer has it: at least 1, and more the rarer a word is.

    Parameters
    ----------
    words : sequence of str
    texts : iterable of str

    Returns
    -------
    ndarray of float, shape (n_words,)
    """
    listed = [words_in(text) for text in texts]
    counts = Counter(word for found in listed for word in found)
    having = np.array([counts[word] for word in words], dtype=np.float64)
    return np.asarray(np.log((1 + len(listed)) / (1 + having)) + 1, dtype=np.float64)
