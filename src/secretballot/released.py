"""What is released: labels, all that public modules ever see of a release."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from secretballot._typing import BoolArray, FloatArray, IntArray, Json, JsonView
from secretballot._validation import check_count, check_positive, name_part
from secretballot.core.mechanisms import Mechanism, NoisyVotes
from secretballot.core.types import VoteShape
from secretballot.exceptions import DataError, Parameter

__all__ = ["ReleasedLabels", "ReleasedSums", "ReleasedTable", "labels_of_table"]

_VERSION = 1


def _read_only_integers(name: str, values: object) -> IntArray:
    """Return a read-only int64 copy of `values`, or raise `DataError` if they are no integers."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise DataError(name_part(name), f" has dtype {array.dtype}; it must hold integers.")
    copy = array.astype(np.int64)
    copy.setflags(write=False)
    return copy


def _checked_classes(classes: object) -> tuple[str | int | float | bool, ...]:
    """Return class values as the Python scalars that JSON gives back unchanged."""
    given = np.asarray(classes, dtype=object).ravel()
    values = tuple(value.item() if isinstance(value, np.generic) else value for value in given)
    plain = all(isinstance(value, str | int | float) and value == value for value in values)
    if not plain or not 2 <= len(set(values)) == len(values):
        raise DataError(
            Parameter("classes"),
            " must hold the two or more classes that were voted on, each once: strings, integers,"
            " numbers or truth values.",
        )
    return values


def _checked_certificate(certificate: Any) -> Json:
    """Return a private copy of the certificate as JSON would give it back."""
    try:
        copy: Json = json.loads(json.dumps(dict(certificate), allow_nan=False))
    except (TypeError, ValueError):
        raise DataError("certificate must be a dict of what JSON can carry.") from None
    return copy


@dataclass(frozen=True, eq=False)
class _Document:
    """What is released, as a dataclass of JSON values; two are equal when all their fields are."""

    FORMAT: ClassVar[str]

    def to_json(self) -> Json:
        """Return the release as a dict of JSON values, which `from_json` reads back."""
        values = {entry.name: _plain(getattr(self, entry.name)) for entry in fields(self)}
        return {"format": self.FORMAT, "version": _VERSION, **values}

    @classmethod
    def from_json(cls, document: JsonView) -> Self:
        """Return the release that `to_json` wrote.

        Raises
        ------
        DataError
            If the document is of another format or version, lacks a field or carries an unknown
            one.
        """
        header = {"format": cls.FORMAT, "version": _VERSION}
        if not isinstance(document, Mapping) or not header.items() <= document.items():
            raise DataError(
                f"the document is not of the format {cls.FORMAT}, version {_VERSION}; give what"
                " to_json() wrote."
            )
        given = {name: value for name, value in document.items() if name not in header}
        odd = given.keys() ^ {entry.name for entry in fields(cls)}
        if odd:
            raise DataError(f"the document misses or adds fields: {', '.join(sorted(odd))}.")
        return cls(**given)

    def __eq__(self, other: object) -> bool:
        # as text: 1, 1.0 and True are equal but not the same class
        return isinstance(other, type(self)) and self._text() == other._text()

    def _text(self) -> str:
        return json.dumps(self.to_json(), sort_keys=True)

    __hash__ = None  # type: ignore[assignment]  # equal by value, and the certificate is a dict

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, because numpy's own pickles forget that an array was read-only.
        return type(self), tuple(getattr(self, entry.name) for entry in fields(self))


def _plain(value: Any) -> Any:
    """Return a field as JSON has it."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return _checked_certificate(value)
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True, eq=False)
class ReleasedLabels(_Document):
    """Hold the outcome of one release: public by construction, safe to store, print and publish.

    Arrays are copied on entry and read-only afterwards; two releases are equal when all their
    fields are.

    Parameters
    ----------
    queries : array of int, shape (n_queries,)
        Rows of the public pool that were asked, in the order in which they were asked.
    labels : array of int, shape (n_queries,)
        Index into `classes` of each answer; -1 where the mechanism abstained.
    classes : sequence of str, int, float or bool
        Class values, two or more, distinct.
    n_teachers : int
        Number of teachers that voted; 0 where one model, chosen among candidates, gave all labels,
        and where records voted for themselves, whose number is private. Where teachers cast
        several votes each it is the number of all votes.
    sigma : float, optional
        Standard deviation of the noise on each noisy count, in votes. Given exactly when
        `noisy_counts` is.
    noisy_counts : array of int, shape (n_queries,) or (n_queries, n_classes), optional
        Released noisy counts, in votes: of the second class for two classes, or one column for each
        class. They may be negative or exceed `n_teachers`, as noise will have it.
    certificate : dict
        What the release promises, as JSON values.

    Raises
    ------
    DataError
        If shapes, types or ranges do not fit together.
    ParameterError
        If `n_teachers` or `sigma` is out of range.

    Examples
    --------
    >>> released = sb.ReleasedLabels(
    ...     queries=[4, 7], labels=[1, -1], classes=("no", "yes"), n_teachers=100
    ... )
    >>> released.answered.tolist()
    [True, False]
    >>> released.label_values
    array(['yes'], dtype='<U3')
    """

    FORMAT: ClassVar[str] = "secretballot/released-labels"

    queries: IntArray
    labels: IntArray
    classes: tuple[str | int | float | bool, ...]
    n_teachers: int
    sigma: float | None = None
    noisy_counts: IntArray | None = None
    certificate: Json = field(default_factory=dict)

    def __post_init__(self) -> None:
        set_field = object.__setattr__  # the dataclass is frozen; fields are normalised once, here
        set_field(self, "queries", _read_only_integers("queries", self.queries))
        set_field(self, "labels", _read_only_integers("labels", self.labels))
        set_field(self, "classes", _checked_classes(self.classes))
        set_field(self, "n_teachers", check_count("n_teachers", self.n_teachers, minimum=0))
        set_field(self, "certificate", _checked_certificate(self.certificate))
        # shapes and ranges of labels come first: counts are compared with them
        self._check_rows()
        if (self.noisy_counts is None) != (self.sigma is None):
            raise DataError(
                "noisy_counts and sigma belong together; give both, or neither for labels alone."
            )
        if self.noisy_counts is not None:
            set_field(self, "sigma", check_positive("sigma", self.sigma))
            self._check_counts(_read_only_integers("noisy_counts", self.noisy_counts))

    def _check_rows(self) -> None:
        queries, labels = self.queries, self.labels
        if queries.ndim != 1 or labels.shape != queries.shape or (queries < 0).any():
            raise DataError(
                Parameter("queries"),
                f" has shape {queries.shape} and labels {labels.shape}; both must be of one"
                " dimension and of the same length, and rows of the public pool count from 0.",
            )
        if ((labels < -1) | (labels >= len(self.classes))).any():
            raise DataError(
                Parameter("labels"),
                f" must lie between -1 (abstained) and {len(self.classes) - 1}.",
            )

    def _check_counts(self, counts: IntArray) -> None:
        l, n_classes = len(self.queries), len(self.classes)  # noqa: E741  # the papers' letter
        if not counts.size and n_classes > 2:  # JSON's empty list has no columns
            counts = counts.reshape(0, n_classes)
        allowed = [(l, n_classes)] + ([(l,)] if n_classes == 2 else [])
        if counts.shape not in allowed:
            raise DataError(
                Parameter("noisy_counts"),
                f" has shape {counts.shape}; for these queries and classes it must be"
                f" {' or '.join(map(str, allowed))}.",
            )
        object.__setattr__(self, "noisy_counts", counts)

    @property
    def n_classes(self) -> int:
        """Number of classes the teachers voted on."""
        return len(self.classes)

    @property
    def by_record(self) -> bool:
        """Whether records voted for themselves, as the certificate says."""
        public = self.certificate.get("public")
        return isinstance(public, dict) and public.get("method") == "record-votes"

    @property
    def votes_per_record(self) -> int:
        """At how many points each record voted, where records voted for themselves."""
        shape: Json = self.certificate["shape"]
        replaced = shape["guarantee"]["relation"] == "replace-one"
        return int(shape["moved"]) // (2 if replaced else 1)

    @property
    def answered(self) -> BoolArray:
        """Mask of shape (n_queries,): true where a label came out, false for an abstention."""
        mask: BoolArray = self.labels >= 0
        return mask

    @property
    def class_values(self) -> NDArray[Any]:
        """Class values, shape (n_classes,); of dtype object only if their types are mixed."""
        uniform = len({type(value) for value in self.classes}) == 1
        return np.array(self.classes, dtype=None if uniform else object)

    @property
    def label_values(self) -> NDArray[Any]:
        """Class values of the answered queries: one for each row of ``queries[answered]``."""
        values: NDArray[Any] = self.class_values[self.labels[self.answered]]
        return values

    def __repr__(self) -> str:
        kind = "labels" if self.noisy_counts is None else f"noisy counts, sigma={self.sigma:.6g}"
        answered = int(self.answered.sum())
        return (
            f"ReleasedLabels({len(self.queries)} queries, {answered} answered, "
            f"{self.n_classes} classes, {self.n_teachers} teachers, {kind})"
        )


@dataclass(frozen=True, eq=False)
class ReleasedSums(_Document):
    """Hold noisy sums over records that no labels go with: public, safe to store and print.

    Sums and model are on the certificate.

    Parameters
    ----------
    certificate : dict
        What the release promises, as JSON values.

    Raises
    ------
    DataError
        If the certificate is none.

    Examples
    --------
    >>> sb.released.ReleasedSums({"epsilon": 1.0}).certificate["epsilon"]
    1.0
    """

    FORMAT: ClassVar[str] = "secretballot/released-sums"

    certificate: Json

    def __post_init__(self) -> None:
        object.__setattr__(self, "certificate", _checked_certificate(self.certificate))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(certificate=...)"


class ReleasedTable(ReleasedSums):
    """Hold answers to votes for sets of labels, or for numbers: public, safe to store and print.

    The answers are on the certificate.

    Parameters
    ----------
    certificate : dict
        What the release promises, as JSON values.

    Raises
    ------
    DataError
        If the certificate is none.

    Examples
    --------
    >>> answers = {"rows": [4, 7], "values": [[0, 1], [1, 1]]}
    >>> public = {"method": "votes-of-labels", "labels": ["a", "b"]}
    >>> table = sb.released.ReleasedTable({"public": public, "released": answers})
    >>> table.rows.tolist(), table.values.tolist()
    ([4, 7], [[0.0, 1.0], [1.0, 1.0]])
    """

    FORMAT: ClassVar[str] = "secretballot/released-table"

    @property
    def rows(self) -> IntArray:
        """Rows of the public pool that were answered, shape (n_asked,)."""
        return _read_only_integers("rows", self.certificate["released"]["rows"])

    @property
    def answers(self) -> IntArray:
        """The integers that were drawn, shape (n_asked, n_columns)."""
        return _read_only_integers("answers", self.certificate["released"]["values"])

    @property
    def values(self) -> FloatArray:
        """The answers in their own unit, shape (n_asked, n_columns).

        0 and 1 for labels, noisy counts in votes, or numbers: a noisy mean may lie beyond the
        range.
        """
        answers = self.answers.astype(np.float64)
        if "bounds" not in self.certificate["public"]:
            return answers
        (low, high), shape = self.certificate["public"]["bounds"], self.certificate["shape"]
        if self.certificate["mechanism"]["kind"] == "noisy-means":
            answers = answers / shape["n_teachers"]
        return np.asarray(low + answers * ((high - low) / (shape["n_classes"] - 1)))


def labels_of_table(table: ReleasedTable) -> list[ReleasedLabels]:
    """Return what was released of each label by itself, as labels 0 and 1 with their counts.

    Of sets, the counts of a label are those of all sets that have it, and their noise adds up.
    """
    certificate, public = table.certificate, table.certificate["public"]
    teachers, n_labels = certificate["shape"]["n_teachers"], len(public["labels"])
    answers, sigma = table.answers, None
    if certificate["mechanism"]["release"] == "counts":
        sigma = certificate["mechanism"]["scale"]
        if public["ballot"] == "sets":
            # which labels each set has, in the order of the counts
            answers = answers @ (np.arange(2**n_labels)[:, np.newaxis] >> np.arange(n_labels) & 1)
            sigma *= 2 ** ((n_labels - 1) / 2)
    return [
        ReleasedLabels(
            table.rows,
            # at least half of the teachers, as everywhere
            column if sigma is None else (2 * column >= teachers).astype(np.int64),
            (0, 1),
            teachers,
            sigma,
            None if sigma is None else column,
            table.certificate,
        )
        for column in answers.T
    ]


def labels_in(
    mechanism: Mechanism, shape: VoteShape, values: IntArray
) -> tuple[IntArray, IntArray | None]:
    """Return labels, int64 of shape (n,), and noisy counts where they are released, of what was
    drawn, of shape (n, n_columns)."""
    if not (isinstance(mechanism, NoisyVotes) and mechanism.release == "counts"):
        return values[:, 0], None
    if values.shape[1] > 1:
        return values.argmax(axis=1), values
    return (2 * values[:, 0] >= (shape.n_teachers or 0)).astype(np.int64), values[:, 0]
