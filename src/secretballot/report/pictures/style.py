"""What all pictures share: style, colours, and the ways from painted axes to a page or a file.

Colours are those of Okabe and Ito, which colour-blind readers distinguish; nothing is shown by
colour alone. Text stays text, so that a page can search, scale and read it aloud.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO
from typing import Any

from secretballot.report.certificate.labels_file import class_text
from secretballot.report.extras import require_extra
from secretballot.report.wording import shown

BLUE, ORANGE, GREY, SLATE, PALE, INK = (
    "#0072B2",
    "#D55E00",
    "#8A8F98",
    "#C3C9D1",
    "#E6E8EB",
    "#1B1F24",
)
_WIDTH = 5.0  # inches; 360 units of SVG, about the width of a telephone
_DOTS_PER_INCH = 200
_LONGEST_NAME = 16
_STYLE = {
    "svg.fonttype": "none",
    "font.family": ["DejaVu Sans"],
    "font.size": 10.5,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.unicode_minus": False,
    "hatch.linewidth": 0.7,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.8,
    "ytick.major.width": 0.8,
    "figure.constrained_layout.use": True,
}


@dataclass(frozen=True)
class Picture:
    """One picture, painted anew for every way it is shown.

    Attributes
    ----------
    name : str
        Keeps its ids apart from those of other pictures on a page.
    height : float
        In inches; all are five inches wide.
    paint : callable
        Paints on the axes it is given.
    """

    name: str
    height: float
    paint: Callable[[Any], None]

    def inline(self) -> str:
        """Return the svg element for the inside of a page."""
        return _svg_element(self._svg_text(), self.name)

    def svg(self) -> bytes:
        """Return an SVG file."""
        text = self.inline().replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        return text.replace(' aria-hidden="true"', ' role="img"', 1).encode()

    def png(self) -> bytes:
        """Return a PNG file."""
        content = BytesIO()
        self._save_figure(content, format="png", dpi=_DOTS_PER_INCH, metadata={"Software": None})
        return content.getvalue()

    def _svg_text(self) -> str:
        text = StringIO()
        self._save_figure(
            text, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
        )
        return text.getvalue()

    def _save_figure(self, target: Any, **settings: Any) -> None:
        matplotlib = require_extra("matplotlib", "report")
        figures = require_extra("matplotlib.figure", "report")
        with matplotlib.rc_context(_STYLE | {"svg.hashsalt": self.name}), warnings.catch_warnings():
            # a font without some character of a class name; the reader's browser has one
            warnings.simplefilter("ignore")
            figure = figures.Figure(figsize=(_WIDTH, self.height))
            self.paint(figure.add_subplot())
            # places are found once; left to the file's writer, all is drawn twice for them
            figure.get_layout_engine().execute(figure)
            figure.set_layout_engine("none")
            figure.savefig(target, **settings)


def _svg_element(svg: str, name: str) -> str:
    """Return the svg element alone: no document type, no metadata, ids with `name` in front."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(
        r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", "", svg, flags=re.DOTALL
    )
    head, body = svg.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', head)
    body = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", body).replace("xlink:href", "href")
    return f'<svg {box[0] if box else ""} aria-hidden="true" stroke-linejoin="round">{body.strip()}'


def bars_picture(
    name: str, rows: Sequence[tuple[str, float]], words: str, *, percent: bool = False
) -> str:
    """Draw a horizontal bar for each name and amount, from above downwards.

    Parameters
    ----------
    name : str
        Of the picture.
    rows : sequence
    words : str
        What the amounts are.
    percent : bool
        Whether they are shares in percent; else they are whole numbers.
    """
    amounts = [amount for _, amount in rows]
    # columns that work against each other may have negative shares, and others more than 100
    least, most = min(0.0, *amounts), max(1.0, *amounts)

    def paint(axes: Any) -> None:
        places = range(len(rows) - 1, -1, -1)
        axes.barh(places, amounts, 0.62, color=BLUE)
        for place, amount in zip(places, amounts, strict=True):
            text = f"{amount:.1f} %" if percent else f"{amount:,.0f}"
            beside, offset = (max(amount, 0), place), "offset points"
            axes.annotate(text, beside, xytext=(4, 0), textcoords=offset, va="center")
        axes.set_yticks(places, [name for name, _ in rows])
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.axvline(0, color=GREY, linewidth=0.8)
        grid(axes, "x")
        axes.set_xlim(1.1 * least, 1.22 * most)
        integer_ticks(axes.xaxis)
        axes.set_xticks([tick for tick in axes.get_xticks() if least <= tick <= most])
        axes.set_xlabel(words)

    return Picture(name, 0.8 + 0.3 * len(rows), paint).inline()


def draw_histogram(
    axes: Any, values: Any, bins: Any, marks: Iterable[float], words: str, *, weights: Any = None
) -> None:
    """Draw how often values are, with lines at some marks."""
    axes.hist(values, bins, weights=weights, color=BLUE, edgecolor="white", linewidth=0.5)
    for mark in marks:
        axes.axvline(mark, color=INK, linewidth=1.2, linestyle="--")
    axes.set_xlabel(words)
    grid(axes, "y")


def grid(axes: Any, axis: str) -> None:
    """Draw pale lines across one or both axes."""
    axes.grid(axis=axis, color=PALE, linewidth=0.8)
    axes.tick_params(length=3)


def short_name(value: object) -> str:
    """Return a class value as a string that fits beside a bar."""
    text = shown(class_text(value))
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"


def integer_ticks(axis: Any) -> None:
    """Put ticks of an axis on integers only."""
    axis.set_major_locator(
        require_extra("matplotlib.ticker", "report").MaxNLocator(5, integer=True)
    )
