"""Pictures of a release, of released values only, as SVG for the inside of a page; and what all
pictures share: style, colours, and the ways from painted axes to a page or a file.

Colours are those of Okabe and Ito, which colour-blind readers distinguish; nothing is shown by
colour alone. Text stays text, so that a page can search, scale and read it aloud.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO
from typing import Any

import numpy as np
from scipy.special import ndtri

from secretballot._typing import FloatArray, JsonView
from secretballot._validation import require_extra
from secretballot.released import ReleasedLabels
from secretballot.report.certificate_models import class_text
from secretballot.report.wording import number_text, shown

BLUE, ORANGE, GREY, _SLATE, _PALE, INK = (
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
_MOST_BARS = 12
_BINS = 32
_SMALLEST = 0.01  # on the axis of moments; a number that came out as 0 is drawn there
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
    "axes.axisbelow": True,
    "axes.unicode_minus": False,
    "xtick.color": INK,
    "ytick.color": INK,
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
        text = StringIO()
        self._save_figure(
            text, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
        )
        return _svg_element(text.getvalue(), self.name)

    def svg(self) -> bytes:
        """Return an SVG file."""
        text = self.inline().replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        return text.replace(' aria-hidden="true"', ' role="img"', 1).encode()

    def png(self) -> bytes:
        """Return a PNG file."""
        content = BytesIO()
        self._save_figure(content, format="png", dpi=_DOTS_PER_INCH, metadata={"Software": None})
        return content.getvalue()

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


def draw_columns(names: Sequence[str], shares: Any) -> str:
    """Draw a horizontal bar for what the model says by each column, the largest first; of more than
    fit in a picture the rest are added up.

    Parameters
    ----------
    names : sequence of n_columns str
    shares : ndarray of shape (n_columns,)
        In percent.
    """
    order = np.argsort(-shares, kind="stable")
    kept, others = order[:_MOST_BARS], order[_MOST_BARS:]
    lengths, labels = shares[kept].tolist(), [_short_name(names[k]) for k in kept]
    if len(others):
        lengths.append(shares[others].sum())
        labels.append(f"{len(others)} others")
    # columns that work against each other may have negative shares, and others more than 100
    least, most = min(0.0, *lengths), max(1.0, *lengths)

    def paint(axes: Any) -> None:
        places = range(len(lengths) - 1, -1, -1)
        axes.barh(places, lengths, 0.62, color=BLUE)
        for place, length in zip(places, lengths, strict=True):
            beside, offset = (max(length, 0), place), "offset points"
            axes.annotate(f"{length:.1f} %", beside, xytext=(4, 0), textcoords=offset, va="center")
        axes.set_yticks(places, labels)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.axvline(0, color=GREY, linewidth=0.8)
        grid(axes, "x")
        axes.set_xlim(1.1 * least, 1.22 * most)
        _integer_ticks(axes.xaxis)
        axes.set_xticks([tick for tick in axes.get_xticks() if least <= tick <= most])
        axes.set_xlabel("share of what the model says (%)")

    return Picture("columns", 0.8 + 0.3 * len(lengths), paint).inline()


def _histogram(
    name: str,
    values: Any,
    edges: Any,
    marks: Iterable[float],
    words: str,
    label: str,
    *,
    weights: Any = None,
    band: Sequence[float] = (),
) -> str:
    """Draw how often values are, with lines at some marks, and a pale band."""
    ends = [edges[0], edges[-1], *band]

    def paint(axes: Any) -> None:
        if band:
            axes.axvspan(*band, color=_PALE, linewidth=0)
        axes.hist(values, edges, weights=weights, color=BLUE, edgecolor="white", linewidth=0.5)
        for mark in marks:
            axes.axvline(mark, color=INK, linewidth=1.2, linestyle="--")
        axes.set_xlim(min(ends), max(ends))
        axes.set_xlabel(words)
        axes.set_ylabel(label)
        grid(axes, "y")
        _integer_ticks(axes.yaxis)

    return Picture(name, 2.9, paint).inline()


def grid(axes: Any, axis: str) -> None:
    """Draw pale lines across one or both axes."""
    axes.grid(axis=axis, color=_PALE, linewidth=0.8)
    axes.tick_params(length=3)


def _short_name(value: object) -> str:
    """Return a class value as a string that fits beside a bar."""
    text = shown(class_text(value))
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"


def _integer_ticks(axis: Any) -> None:
    """Put ticks of an axis on integers only."""
    axis.set_major_locator(
        require_extra("matplotlib.ticker", "report").MaxNLocator(5, integer=True)
    )


def draw_budget(certificate: JsonView) -> str:
    """Draw how much of the dataset's budget is spent: before, by this release, and what is left.

    Parameters
    ----------
    certificate : mapping
        Certificate of the release.
    """
    composition = certificate["composition"]
    budget, spent = composition["budget"], composition["spent_after"]
    kinds = [key for key in ("delta", "epsilon") if budget[key] > 0]
    plain_sum = composition["kind"] == "basic"

    def paint(axes: Any) -> None:
        for row, key in enumerate(kinds):
            # a Renyi filter prices all releases together: there is no part of this one alone
            own = min(certificate[key], spent[key]) if plain_sum else spent[key]
            left, start = max(0.0, budget[key] - spent[key]), 0.0
            # earlier, this one, left: the caption says how much each is
            for amount, colour in ((spent[key] - own, _SLATE), (own, BLUE), (left, "white")):
                share = 100 * amount / budget[key]
                axes.barh(row, share, 0.62, start, color=colour, edgecolor=INK, linewidth=0.8)
                start += share
        axes.set_yticks(range(len(kinds)), kinds)
        axes.set_xlim(0, 100)
        axes.set_xlabel("share of the dataset's budget (%)")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)

    return Picture("budget", 0.75 + 0.5 * len(kinds), paint).inline()


def draw_votes(released: ReleasedLabels) -> str:
    """Draw released noisy counts against the threshold, or by how much a class leads.

    Parameters
    ----------
    released : ReleasedLabels
        With noisy counts.
    """
    counts, noise = released.noisy_counts, float(released.sigma or 0)
    assert counts is not None
    if released.n_classes == 2 and not released.by_record:
        values: Any = counts if counts.ndim == 1 else counts[:, 1]
        middle = released.n_teachers / 2
        second = _short_name(released.classes[1])
        words = f"noisy votes for {second}, of {released.n_teachers:,} teachers"
    else:
        ordered = np.sort(counts, axis=1)
        values, middle = ordered[:, -1] - ordered[:, -2], 0.0
        noise *= np.sqrt(2)  # the difference of two noisy counts carries both
        words = "noisy lead of the winning class (votes)"
    width = max(1.0, np.ptp(values) / _BINS)
    # an edge lies on the threshold, so that no bar holds both labels
    first, last = (np.floor((end - middle) / width) for end in (values.min(), values.max()))
    edges = middle + width * np.arange(first, last + 2)

    # within one standard deviation of the threshold noise may have decided
    band = (middle - noise if middle else 0.0, middle + noise)
    return _histogram("votes", values, edges, [middle], words, "queries", band=band)


def draw_confidence(confidence: FloatArray, n_classes: int, *, of_votes: bool = False) -> str:
    """Draw how sure the student is on public points.

    Parameters
    ----------
    confidence : array of shape (n,)
        Highest class probability of each point.
    n_classes : int
        Number of classes C; a guess has probability 1 / C.
    of_votes : bool
        Whether the probabilities are expected shares of the teachers.
    """
    middle = float(np.median(confidence))
    weights = np.full(len(confidence), 100 / len(confidence))
    # the axis begins at a guess: no highest probability can be lower
    edges = np.linspace(1 / n_classes, 1.0, 26)
    words = "the student's highest class probability"
    if of_votes:
        words = "share of teachers expected behind the label"

    values = np.clip(confidence, edges[0], 1.0)
    label = "public points (%)"
    return _histogram("confidence", values, edges, [middle], words, label, weights=weights)


def released_sizes(terms: JsonView) -> list[FloatArray]:
    """Return, for each stage, the sizes of the released numbers over their noise, largest first.

    What counts records is left out: arrays of shape (n_coordinates,).
    """
    n_marks = len(terms["marks"])
    stages = [np.array(one[: len(one) - n_marks], dtype=np.float64) for one in terms["values"]]
    return [np.sort(np.abs(one))[::-1] / terms["sigma"] for one in stages]


def draw_moments(terms: JsonView) -> str:
    """Draw the released numbers of every stage by size, beside what noise alone would give.

    Parameters
    ----------
    terms : mapping
        What `stated` returns of a certificate of noisy sums.
    """
    sizes = released_sizes(terms)
    n = len(sizes[0])
    places = np.arange(1, n + 1)
    # the middle of the r-th largest of n, for a normal distribution
    alone = -ndtri((places - 0.5) / n / 2)

    def paint(axes: Any) -> None:
        axes.axhspan(_SMALLEST, 1.0, color=_PALE, linewidth=0)
        # a number that came out as 0 has no place on an axis of logarithms
        axes.plot(places, np.maximum(alone, _SMALLEST), color=GREY, linestyle="--", linewidth=1.4)
        for number, size in enumerate(sizes):
            axes.plot(
                places,
                np.maximum(size, _SMALLEST),
                color=(BLUE, ORANGE, INK)[number % 3],
                linestyle=("-", "-.", ":")[number // 3 % 3],
            )
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: number_text(value))
        axes.set_ylim(_SMALLEST * 3, 2 * max(float(size[0]) for size in sizes) + 4)
        axes.set_xlim(0, n + 1)
        words = [f"stage {number + 1}" for number in range(len(sizes))]
        axes.legend(
            axes.lines, ["noise alone", *words], frameon=False, loc="upper right", fontsize=9.5
        )
        axes.set_xlabel("released numbers, largest first")
        axes.set_ylabel("size, in standard\ndeviations of the noise")
        grid(axes, "y")

    return Picture("moments", 2.9, paint).inline()
