"""What the pages of a release are about, numbers and names, and their templates: sentences, the
report with its pictures, and the texts beside it.

Class names, purposes and names of columns are a stranger's text. The report escapes all of it, and
the sentences that it shows come to it as plain text; in the texts `plain` and `code` keep it from
being markup.
"""

import functools
import math
import re
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from secretballot._typing import FloatArray
from secretballot.bases import TableBasis
from secretballot.released import ReleasedLabels, ReleasedSums, ReleasedTable
from secretballot.report import pictures, wording
from secretballot.report.certificate import UNSEEN_TEACHERS
from secretballot.report.certificate_models import (
    EXPONENTIAL,
    LABEL_VOTES,
    NUMBER_VOTES,
    RECORD_VOTES,
    SUMS,
    Coverage,
    coverage_by_votes,
    coverage_on,
    stands_alone,
    stated,
    total_price,
)
from secretballot.report.metrics import AnyMetrics
from secretballot.report.verification import verify_certificate
from secretballot.report.wording import at_most_text, number_text, shown, value_text

_WIDTH = 96  # characters of a line of README.txt
_MOST_NAMES = 12  # of labels, in a sentence
_HERE = files("secretballot.publishing")
_MOST_POINTS = 10_000  # where there are more, every so many-th is tried
_KINDS = {
    EXPONENTIAL: "choice",
    RECORD_VOTES: "record-votes",
    LABEL_VOTES: "labels",
    NUMBER_VOTES: "numbers",
    **dict.fromkeys(SUMS, "sums"),
}
#: What takes the place of a purpose where nobody stated one: the verb of the command line.
_VERBS = ("", "learn", "label")


class Facts:
    """Numbers and names of a release.

    Attributes
    ----------
    certificate, terms : dict
        The certificate, and what `stated` returns of it.
    kind : {"votes", "record-votes", "sums", "choice", "labels", "numbers"}
        The last two are tables.
    target : {"class", "number", "labels"}
    epsilon, delta : float
        Of the release and what was chosen for it.
    asked, answered : int
    classes : tuple
    counts : bool
        Whether noisy counts are released beside labels, with noise of `sigma`.
    """

    def __init__(self, released: ReleasedLabels | ReleasedSums) -> None:
        self._released = released
        self.certificate, self.terms = released.certificate, stated(released.certificate)
        self.kind = _KINDS.get(self.terms["method"], "votes")
        self.target = "number" if "bounds" in self.terms else "labels"
        if isinstance(released, ReleasedLabels):
            self.target = "class"
        self.epsilon, self.delta = total_price(self.certificate)
        self.classes: tuple[Any, ...] = ()
        self.counts, self.sigma = False, 0.0
        self.asked = self.answered = 0
        if isinstance(released, ReleasedTable):
            self.asked = self.answered = len(released.rows)
        elif isinstance(released, ReleasedLabels):
            self.asked, self.answered = len(released.queries), int(released.answered.sum())
            self.classes, self.counts = tuple(released.classes), released.noisy_counts is not None
            self.sigma = float(released.sigma or 0)

    @property
    def about(self) -> list[tuple[str, str]]:
        """What the curator stated: of what, and the words, empty where nothing was stated."""
        certificate = self.certificate
        about, purpose = certificate.get("about", {}), str(certificate["purpose"]).strip()
        said = {"Purpose": "" if purpose in _VERBS else purpose}
        said |= {name.capitalize(): about.get(name, "") for name in ("controller", "contact")}
        if "title" in about:
            said["Account"] = certificate["composition"]["dataset"]
        return [(name, shown(words)) for name, words in said.items()]

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the noise on one released mean, in the unit of the target."""
        terms = self.terms
        if self.kind != "numbers" or "rank" in terms:
            return None
        low, high = terms["bounds"]
        return float(terms["sigma"] / terms["n_teachers"] * (high - low) / (terms["n_classes"] - 1))

    @functools.cached_property
    def counted(self) -> tuple[Coverage, float, float] | None:
        """Coverage by the public points, the number of records, and its standard error."""
        released = self._released
        if self.kind == "sums":
            return coverage_on(self.terms)
        if isinstance(released, ReleasedSums) or released.noisy_counts is None:
            return None
        return coverage_by_votes(self.terms, released.noisy_counts)

    @property
    def warning(self) -> str:
        """What to say aloud of public points that miss a part of the records; else nothing."""
        return self.counted[0].warning if self.counted and self.counted[0].is_poor else ""

    @property
    def factor(self) -> str:
        """By how much odds change, at most; a larger exponent would overflow."""
        return at_most_text(math.exp(min(self.epsilon, 700.0)))


def _shares_to_draw(student: Any, X_public: Any) -> FloatArray | None:
    """Return the probabilities of a student of classes at up to ten thousand public points; None
    where there is nothing to draw.

    It may be anybody's: a picture less is no reason to lose a release. What memory there is, is no
    property of the student.
    """
    # every so many-th, without randomness
    step = max(1, math.ceil(X_public.shape[0] / _MOST_POINTS))
    points = X_public.iloc[::step] if hasattr(X_public, "iloc") else X_public[::step]
    try:
        shares = np.asarray(student.predict_proba(points), dtype=np.float64)
    except MemoryError:
        raise
    except Exception:
        return None
    return shares if shares.ndim == 2 and shares.size and np.isfinite(shares).all() else None


def _names(names: list[Any]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(map(shown, names[:_MOST_NAMES])) + (f" and {more} more" if more > 0 else "")


def _without_markup(text: object) -> str:
    """Return text in which nothing is markup."""
    return "".join(f"\\{char}" if char in "\\`*_{}[]<>#|!" else char for char in shown(text))


def _moment(issued: str) -> str:
    """Return a time as people write it; anything unusual as it is."""
    day, _, time = issued.partition("T")
    return f"{day} {time[:5]} UTC" if time.endswith("+00:00") else shown(issued)


def _fill(text: str, indent: str = "") -> str:
    """Return lines of a width that everybody can read."""
    return textwrap.fill(
        " ".join(text.split()), _WIDTH, initial_indent=indent, subsequent_indent=indent
    )


@functools.cache
def _parameters() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads(_HERE.joinpath("parameters.toml").read_text("utf-8"))


def _parameters_of(facts: Facts) -> list[tuple[str, str]]:
    """Return the parameters of the mechanism that `parameters.toml` has words for."""
    words, terms = _parameters().get(facts.kind, _parameters()["votes"]), facts.terms
    return [
        (name, " ".join([value_text(terms[key], key), *unit]))
        for key, (name, *unit) in words.items()
        if terms.get(key) is not None
    ]


def _environment(*, of_page: bool) -> jinja2.Environment:
    environment = jinja2.Environment(
        autoescape=of_page,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "number": number_text,
        "shown": shown,
        "count": wording.count_text,
        # what a reader calls a unit: a record, a person or a label
        "noun": lambda unit: "person" if unit == "user" else unit,
        "one_in": wording.one_in,
        # how sure somebody may become at most of what was as likely as not
        "posterior": lambda epsilon: wording.percent_text(100 / (1 + math.exp(-epsilon))),
        "short": lambda value, digits=4: number_text(float(f"{value:.{digits}g}")),
        "share": lambda share: "-" if share is None else f"{share:.3f}",
        "names": _names,
        "places": wording.places_text,
        "plain": _without_markup,
        "code": lambda text: shown(text).replace("`", "'").replace("|", "\\|"),
        "fill": _fill,
        "moment": _moment,
        "value": value_text,
    }
    environment.globals |= {
        "total_price": total_price,
        "stands_alone": stands_alone,
        "parameters": _parameters_of,
        "say": _say,
        "sentences": _sentences,
    }
    return environment


@functools.cache
def template(name: str) -> jinja2.Template:
    """Return a template by its file's name; one of a page escapes all that it is given."""
    environment = _environment(of_page=name.endswith(".html.j2"))
    return environment.from_string(_HERE.joinpath(name).read_text("utf-8"))


def _sentences(name: str, *values: Any) -> list[str]:
    """Return the sentences of a macro of `words.txt.j2`, paragraph by paragraph, as plain text."""
    text = str(getattr(template("words.txt.j2").module, name)(*values))
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]


def _say(name: str, *values: Any) -> str:
    """Return the sentences of a macro of `words.txt.j2` as one paragraph of plain text."""
    return " ".join(_sentences(name, *values))


def text_of(name: str, **values: Any) -> str:
    """Return a text beside the page."""
    text = template(name).render(**values)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def render_page(
    released: ReleasedLabels | ReleasedSums,
    student: Any = None,
    X_public: Any = None,
    columns: Sequence[str] = (),
    files_written: Mapping[str, str] | None = None,
    metrics: AnyMetrics | None = None,
) -> str:
    """Return the report of a release as one HTML page that needs nothing else.

    Parameters
    ----------
    released : ReleasedLabels, ReleasedTable or ReleasedSums
        What was released, with its certificate.
    student : fitted classifier, or student of tables, optional
        Trained on it.
    X_public : array or frame of shape (n, n_features), optional
        Public points on which the student's confidence is drawn.
    files_written : mapping, optional
        Name of each file beside the page, with what it is.
    columns : sequence of n_features str
        Name of the raw column that each column of the points is of, for pictures.
    metrics : AnyMetrics, optional
        Of the student on public labelled points.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    facts, shares = Facts(released), None
    drawn = {"budget": pictures.draw_budget(facts.certificate)}
    if isinstance(released, ReleasedLabels):
        if facts.counts and facts.asked:
            drawn["votes"] = pictures.draw_votes(released)
        if student is not None and X_public is not None:
            shares = _shares_to_draw(student, X_public)
    # our own student of noisy counts predicts votes; any other predicts the class itself
    of_votes = hasattr(student, "predict_shares")
    if shares is not None:
        sure, n_classes = shares.max(axis=1), len(facts.classes)
        drawn["confidence"] = pictures.draw_confidence(sure, n_classes, of_votes=of_votes)
    if facts.kind == "sums":
        drawn["moments"] = pictures.draw_moments(facts.terms)
        drawn |= _picture_of_columns(student, X_public, columns)
    return template("page.html.j2").render(
        f=facts,
        # the pictures are the package's own SVG: the template must not escape them
        pictures={name: Markup(svg) for name, svg in drawn.items()},
        sizes=pictures.released_sizes(facts.terms) if facts.kind == "sums" else [],
        n_drawn=None if shares is None else len(shares),
        of_votes=of_votes,
        student=None if student is None else type(student).__name__,
        metrics=metrics,
        unseen=UNSEEN_TEACHERS,
        verification=verify_certificate(facts.certificate),
        files_written=dict(files_written or {}),
    )


def _picture_of_columns(student: Any, X_public: Any, columns: Sequence[str]) -> dict[str, str]:
    """Draw the columns of the table, by name, and the share of each, where the student is the model
    itself and says anything."""
    if X_public is None or not isinstance(getattr(student, "basis", None), TableBasis):
        return {}
    shares: FloatArray = student.column_shares(X_public)
    raw = [*map(str, columns or student.basis.feature_names_in_)]
    names = list(dict.fromkeys(raw))
    drawn = 100 * np.bincount([names.index(one) for one in raw], shares, minlength=len(names))
    return {"columns": pictures.draw_columns(names, drawn)} if drawn.any() else {}
