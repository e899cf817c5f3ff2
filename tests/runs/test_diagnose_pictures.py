"""Pictures of diagnoses: every number can be read, however many abstentions are considered."""

import itertools
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from secretballot.ensemble.diagnostics.sealed_result import Diagnosis
from secretballot.report.pictures.style import _STYLE, Picture
from secretballot.runs.diagnosis.pictures import _stability_picture


def painted(picture: Picture) -> tuple[Any, Any]:
    """Return the axes of a picture of the size that is saved, and what measures its texts."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(5, picture.height))
        canvas = FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        picture.paint(axes)
        canvas.draw()
    return axes, canvas.get_renderer()


@pytest.mark.parametrize("count", [1, 5, 7, 8, 20])
def test_numbers_of_a_stability_picture_keep_apart(count: int) -> None:
    values = {
        "max_unstable": np.arange(10_001 - count, 10_001),
        "unstable": np.ones(count),
        "answered": np.full(count, 54_321.0),
    }
    axes, ruler = painted(_stability_picture(Diagnosis("stability", {"queries": 100_000}, values)))
    for texts in (axes.get_xticklabels(), axes.texts):
        boxes = [text.get_window_extent(ruler) for text in texts]
        assert len(boxes) == count
        assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
    assert all(text.get_window_extent(ruler).y1 < axes.bbox.y1 for text in axes.texts)
    assert axes.get_title(loc="left") == "NOT RELEASABLE"
