"""What a learner is fitted inside of: a pipeline whose steps have seen all private records, or a
search that fits again and again.

Both are looked for in the calls that lead to the fit: scikit-learn tells an estimator nothing of
them.
"""

import sys
from collections.abc import Iterator
from typing import Any

from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from secretballot._validation import plain_line
from secretballot.exceptions import ParameterError

__all__ = ["is_in_search", "refuse_private_steps"]

_SEARCHES = "sklearn.model_selection"
_POINTS = "X_public"
# whose transformers look at labels only where they say that they require them
_WITHOUT_LABELS = (
    "sklearn.decomposition.",
    "sklearn.impute.",
    "sklearn.kernel_approximation",
    "sklearn.preprocessing.",
    "sklearn.random_projection",
)


def refuse_private_steps(
    learner: Any, *, carries_points: bool = True, features_public: bool = False
) -> None:
    """Refuse a fit inside of a pipeline that leads one record to all others, or leaves the public
    points behind.

    A step before the learner that was fitted to the private records, such as a scaler, is a
    computation of all of them that no price covers. Steps that learn nothing, and frozen ones, are
    taken, if they change the public points too.

    Parameters
    ----------
    learner : estimator
        Whose fit calls this.
    carries_points : bool
        Whether it was given public points, which the steps have to change as well.
    features_public : bool
        Whether labels alone are private: then scikit-learn's steps that look at features alone are
        taken.

    Raises
    ------
    ParameterError
        Naming the step; settings alone decide it.
    """
    current = learner
    for caller in _fitting_callers():
        # the nearest fit comes first: a pipeline matters if its last step is what was found so far
        if isinstance(caller, Pipeline) and caller.steps and caller.steps[-1][1] is current:
            _check_pipeline(caller, carries_points=carries_points, features_public=features_public)
            current = caller
        elif (
            isinstance(caller, TransformedTargetRegressor)
            and getattr(caller, "regressor_", None) is current
        ):
            if caller.transformer is not None and _step_learns(
                caller.transformer, labels_alone=False
            ):
                raise ParameterError(
                    f"The targets were transformed by {type(caller.transformer).__name__}, which"
                    " was fitted to all private targets: one of them reaches every prediction"
                    " through it, and no price covers that. Give public numbers in a func and an"
                    " inverse_func instead. Nothing was spent."
                )
            current = caller


def is_in_search() -> bool:
    """Return whether a cross-validation or a search of scikit-learn fits this."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(_SEARCHES):
            return True
        frame = frame.f_back
    return False


def _fitting_callers() -> Iterator[Any]:
    """Yield the objects whose fits led here, the nearest first."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name.startswith("fit") and "self" in frame.f_code.co_varnames:
            yield frame.f_locals.get("self")
        frame = frame.f_back


def _check_pipeline(pipeline: Any, *, carries_points: bool, features_public: bool) -> None:
    steps = [(name, step) for name, step in pipeline.steps[:-1] if not _is_nothing(step)]
    for name, step in steps:
        # what learnt from private values and stands before the learner is paid for by nobody
        if features_public and _step_learns(step, labels_alone=True):
            raise ParameterError(
                f"The pipeline's step {_quoted_name(name)} ({type(step).__name__}) may have learnt"
                " from all private labels before this learner got them, and no price covers that."
                " Fit it to the features beforehand, without labels, or put it inside the teacher."
                " Nothing was spent."
            )
        if not features_public and _step_learns(step, labels_alone=False):
            raise ParameterError(
                f"The pipeline's step {_quoted_name(name)} ({type(step).__name__}) was fitted to"
                " all private records before this learner got them: one record reaches every"
                " prediction through it, and no price covers that. Put it inside the teacher, as"
                f" teacher=make_pipeline({type(step).__name__}(), ...), or fit it to the public"
                " points and freeze it, as FrozenEstimator(step.fit(X_public)). Nothing was spent."
            )
    if steps and carries_points and _POINTS not in (pipeline.transform_input or ()):
        raise ParameterError(
            f"The pipeline's step {_quoted_name(steps[0][0])} changes X and not {_POINTS}, so the"
            " public points would be strangers to the records; make the pipeline with"
            f' transform_input=["{_POINTS}"], let scikit-learn route metadata'
            " (enable_metadata_routing=True), and ask for the points by set_fit_request"
            f"({_POINTS}=True, classes=True). Nothing was spent."
        )


def _quoted_name(name: str) -> str:
    return repr(plain_line(str(name))[:60])


def _is_nothing(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step in ("passthrough", "drop"))


def _step_learns(step: Any, *, labels_alone: bool) -> bool:
    """Return whether a step learns from what it is fitted to, or, if so asked, from labels."""
    if _is_nothing(step) or isinstance(step, FrozenEstimator):
        return False
    parts: list[Any] | None = None
    if isinstance(step, Pipeline):
        parts = [part for _, part in step.steps]
    elif isinstance(step, FeatureUnion):
        parts = [part for _, part in step.transformer_list]
    elif isinstance(step, ColumnTransformer):
        parts = [part for _, part, _ in step.transformers] + [step.remainder]
    if parts is not None:
        return any(_step_learns(part, labels_alone=labels_alone) for part in parts)
    tags = get_tags(step)
    room = type(step).__module__
    blind = room.startswith(_WITHOUT_LABELS) and not tags.target_tags.required
    return bool(tags.requires_fit and not (labels_alone and blind))
