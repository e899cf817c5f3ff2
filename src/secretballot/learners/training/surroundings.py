"""Whether scikit-learn fits a learner, as a part of something larger.

scikit-learn tells an estimator nothing of it, so the modules of the calls that led here are looked
at.
"""

import sys
import warnings

from secretballot.exceptions import UnpricedFitWarning

_PACKAGE, _SKLEARN = "secretballot.", "sklearn."
_STEPS = ("sklearn.pipeline", "sklearn.compose")
_NO_FITS = ("sklearn.base", "sklearn.utils")
_IN_PIPELINE = (
    "This fit is a part of a pipeline, and no price covers what its other parts learn from private"
    " records. Put them inside the teacher, or fit them to public points and freeze them; they must"
    " change X_public too."
)
_IN_SEARCH = (
    "scikit-learn fits this learner, as in a cross-validation, a search or an ensemble. Every such"
    " fit spends a budget of its own, which no certificate adds up. Give all fits one ledger=, or"
    " choose settings on public or synthetic data, or by hold_out and choose_candidate."
)


def warn_inside_sklearn(*, alone: bool) -> None:
    """Warn of a fit inside of a pipeline or, without a ledger, of a search, before it spends.

    Parameters
    ----------
    alone : bool
        Whether an account of this fit alone pays.

    Warns
    -----
    UnpricedFitWarning
    """
    frame, modules = sys._getframe(1), list[str]()
    while frame is not None:
        modules.append(str(frame.f_globals.get("__name__", "")))
        frame = frame.f_back  # type: ignore[assignment]  # None at the end
    if any(name.startswith(_STEPS) for name in modules):
        text = _IN_PIPELINE
    elif alone and any(
        name.startswith(_SKLEARN) and not name.startswith(_NO_FITS) for name in modules
    ):
        text = _IN_SEARCH
    else:
        return
    own = (place for place, name in enumerate(modules, 2) if not name.startswith(_PACKAGE))
    warnings.warn(text, UnpricedFitWarning, stacklevel=next(own))
