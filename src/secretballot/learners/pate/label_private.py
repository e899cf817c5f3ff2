"""PATE where the labels alone are private: the records without them are the public points."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import check_count, check_finite, shown
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.learners.pate.classifier import PATEClassifier
from secretballot.learners.training.inputs import as_matrix
from secretballot.learners.training.table import Table
from secretballot.teachers.rows import n_rows, take_rows


@dataclass(eq=False, repr=False)
class LabelPrivateClassifier(PATEClassifier):
    """Learn a publishable classifier from public features and private labels.

    The records are split by a public seed. One part loses its labels, never to be looked at, and
    becomes the pool of public points; teachers learn from the other part and vote on the pool; the
    votes are released with noise; a student learns from them. Choose this only where all features
    of all records may be known to everybody: what they tell of a label is not protected.

    Parameters
    ----------
    teacher : scikit-learn classifier, default a hardly regularised LogisticRegression
        Cloned for every shard. What uses labels belongs inside it; features may be scaled or
        encoded beforehand, over all rows, since they are public.
    student : scikit-learn classifier, optional
        Learns from the released labels. By default the student that measured best for what is
        released.
    n_teachers : int, default 250
        Number of shards K; public, chosen without looking at the labels. At most the records that
        keep theirs.
    budget : PrivacyBudget
        (epsilon, delta) of this fit.
    dropped : float, default 0.5
        Share of the records whose labels are dropped, at least 0 and below 1; only these points may
        be asked. With 0 no label is dropped, every record teaches one teacher, and every point may
        be asked.
    mechanism, n_queries, release, max_abstentions, threshold, max_answers, abstentions, vault,
    request, purpose, n_jobs, engine, progress
        As in `PATEClassifier`.
    ledger : Ledger, optional
        Account of the private labels, made with ``unit="label"`` and ``relation="replace-one"``.
        Without one the fit keeps an account of its own, in memory.
    random_state : int, optional
        Public seed of the split, of the fits and of the choice of points to ask; None is 0. Never
        of the noise.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    student_ : the fitted student
    unlabelled_ : ndarray of int64, ascending
        Rows of `X` that may be asked; the labels of those that were dropped had no influence on
        anything.
    released_labels_ : ReleasedLabels
        Everything that was released; its ``queries`` are rows of `X`.
    certificate_ : dict
        What may be shown to a stranger.
    n_features_in_ : int

    Privacy
    -------
    Unit : one label.
    Relation : replace one label by another; the features and the number of records are public.
    Sensitivity : a label reaches the one teacher that its position and the public seed fix, or
        nobody: one vote per query.
    Price : `budget`, composed in `ledger` with everything else released of the same labels.
    Source : Bassily et al. 2018, section 5, over Algorithm 3; any mechanism in the place of the
        sparse vector.
    Rounding : upward.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> model = sb.LabelPrivateClassifier(
    ...     n_teachers=50, budget=sb.PrivacyBudget(epsilon=2.0, delta=1e-5))
    >>> model = model.fit(X, (X[:, 0] > 0).astype(int), classes=[0, 1])
    >>> len(model.unlabelled_), model.certificate_["unit"]
    (500, 'label')
    """

    _features_are_public = True

    dropped: float = field(default=0.5, kw_only=True)
    # the features are public, so a record can only have another label
    relation: str = field(default="replace-one", init=False)
    estimate_epsilon: float | None = field(default=None, init=False)
    send_shards: bool = field(default=False, init=False)

    # there is neither a public pool nor an id beside the records themselves
    def fit(  # type: ignore[override]
        self, X: Any, y: Any, *, classes: Sequence[Any] | None = None
    ) -> Self:
        """Learn from public features and private labels.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_records, n_features)
            Public.
        y : sequence of shape (n_records,)
            Private labels, each one of `classes`. Of the dropped ones not even that is looked at.
        classes : sequence of two or more values
            Public; never inferred from the private labels.

        Raises
        ------
        ParameterError, DataError
            If something does not fit, or the student cannot learn from the points with dummy
            labels; nothing was spent.
        BudgetError
            If the ledger does not admit the price; nothing was spent.
        """
        X = as_matrix("X", X)
        taught, self.unlabelled_ = self._split_rows(n_rows(X))
        super().fit(
            take_rows(X, taught), _labels_at(y, taught, n_rows(X)), X_public=X, classes=classes
        )
        return self

    def _split_rows(self, n_records: int) -> tuple[IntArray, IntArray]:
        """Return the rows that keep their labels, in the order of their shards, and the rows
        that may be asked."""
        share = check_finite("dropped", self.dropped)
        if not 0 <= share < 1:
            raise ParameterError(
                Parameter("dropped"),
                f" is {shown(self.dropped)}; it must be at least 0 and less than 1.",
            )
        # positions and the public seed alone: no label, and no feature either, has a say in where a
        # label goes
        order = np.random.default_rng(self._public_seed).permutation(n_records)
        n_dropped = int(share * n_records)
        taught = order[n_dropped:]
        asked = np.sort(order[:n_dropped] if share > 0 else order)
        if not len(asked):
            raise ParameterError(
                Parameter("dropped"),
                f" is {share:g} of {n_records} sample(s), which leaves no point to ask; drop"
                " more, or none.",
            )
        if check_count("n_teachers", self.n_teachers) > len(taught):
            raise ParameterError(
                Parameter("n_teachers"),
                f" is {self.n_teachers}, and {len(taught)} of {n_records} sample(s) keep their"
                " labels; every teacher needs one, so ask for fewer teachers or drop fewer"
                " labels.",
            )
        return taught, asked

    @property
    def _public_seed(self) -> int:
        return 0 if self.random_state is None else self.random_state

    def _askable_rows(self, n_public: int) -> IntArray:
        return self.unlabelled_

    def _protected_unit(self, by_unit: bool) -> str:
        return "label"

    def _public_declaration(self, private: Table) -> dict[str, object]:
        rule = (
            "by position and a public seed (the permutation of numpy's"
            f" default_rng({self._public_seed}))"
        )
        fate = "each label goes to one teacher"
        if self.dropped > 0:
            fate = (
                f"a share of {self.dropped:g} of the labels were dropped unread, each of the others"
                " goes to one teacher"
            )
        words = f"The features of all records are public; {fate}, {rule}."
        return {**super()._public_declaration(private), "assumptions": [words]}


def _labels_at(y: Any, rows: IntArray, n_records: int) -> Any:
    """Return the labels at some rows, without a glance at the others: not their values, not even
    their type.

    Raises
    ------
    DataError
        If there is not one label for each record.
    """
    if y is None:
        return None  # for the sentence that every learner has for it
    if not hasattr(y, "__len__") or len(y) != n_records:
        found = f"has {len(y)} labels" if hasattr(y, "__len__") else f"is a {type(y).__name__}"
        raise DataError(f"y {found}; it must have one label for each of the {n_records} rows of X.")
    if hasattr(y, "iloc"):
        return y.iloc[rows]
    if isinstance(y, np.ndarray):
        return y[rows]
    return [y[row] for row in rows.tolist()]
