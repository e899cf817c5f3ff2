"""The report: one page that a data-protection officer can read, made of released values alone."""

import functools
import math
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from secretballot._typing import FloatArray
from secretballot.accounting import CHANCE_BITS, delta_upper, event_in
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.released import ReleasedLabels, ReleasedTable
from secretballot.report.certificate.by_record import RECORD_VOTES, is_by_record
from secretballot.report.certificate.chosen import EXPONENTIAL, is_chosen
from secretballot.report.certificate.moments import MOMENTS, has_moments
from secretballot.report.certificate.plan_checks import stands_alone, total_price
from secretballot.report.certificate.standing import UNSEEN_TEACHERS
from secretballot.report.certificate.terms import CONFIDENCE, stated
from secretballot.report.certificate.verify import verify_certificate
from secretballot.report.certificate.vote_tables import has_table
from secretballot.report.extras import require_extra
from secretballot.report.metrics import Metrics
from secretballot.report.pictures.charts import draw_budget, draw_confidence, draw_votes
from secretballot.report.release.about_words import (
    about_rows,
    caution,
    name_of_data,
    total_words,
)
from secretballot.report.release.chosen_words import EXPONENTIAL_SENTENCE, chosen_words
from secretballot.report.release.metrics_words import metrics_sentences
from secretballot.report.release.moments_words import (
    MOMENTS_SENTENCE,
    coverage_warning,
    moments_captions,
    moments_facts,
    moments_pictures,
    moments_rows,
    moments_words,
    votes_coverage_words,
)
from secretballot.report.release.plan_words import choice_rows, choices_words, plan_words
from secretballot.report.release.quality_words import quality_points
from secretballot.report.release.table_words import (
    table_facts,
    table_metrics_rows,
    table_metrics_sentences,
    table_pictures,
    table_quality,
    table_rows,
)
from secretballot.report.rounds.captions import QUERY_TITLES, query_captions
from secretballot.report.rounds.pictures import draw_query_pictures
from secretballot.report.rounds.story import QueryStory, check_story
from secretballot.report.table_metrics import TableMetrics
from secretballot.report.wording import (
    at_most_text,
    count_text,
    number_text,
    one_in,
    percent_text,
    posterior_percent,
    power_bound,
    shown,
    unit_noun,
    value_text,
)

_FALSE_ALARMS = (0.001, 0.01, 0.05)
_MOST_POINTS = 10_000
_SENTENCES = {
    EXPONENTIAL: EXPONENTIAL_SENTENCE,
    MOMENTS: MOMENTS_SENTENCE,
    "gaussian": (
        "Votes are counted, and random noise with a Gaussian distribution on the integers is added"
        " to the count before it is used."
    ),
    "laplace": (
        "Votes are counted, and random noise with a two-sided geometric distribution (the Laplace"
        " distribution on the integers) is added to the count before it is used; its promise needs"
        " no delta."
    ),
    "table-labels": (
        "Votes are counted, and the class that has fewer of them is told with a chance that a"
        " public table gives for the margin: one half where the vote is even, and less the clearer"
        " it is. Each label is drawn by itself."
    ),
    "confident-labels": (
        "A query is answered only if the highest number of votes for a class, with random noise of"
        " a Gaussian distribution on the integers, reaches a threshold; then the class with the"
        " most votes under fresh noise is told. After a fixed number of answers it stops."
    ),
    CONFIDENCE: (
        "A student that learned from answers before predicts every query. It is corrected only if"
        " the number of votes that contradict it, with random noise of a Gaussian distribution on"
        " the integers, reaches a threshold; then the class with the most votes under fresh noise"
        " is told. After a fixed number of corrections it stops."
    ),
    "sparse-vector": (
        "A query is answered only if its vote is clearly decided, judged against a noisy threshold;"
        " otherwise the answer is withheld, and after a fixed number of withheld answers the stream"
        " stops."
    ),
    "abstention-table": (
        "A query is answered with the class that has the most votes, or the answer is withheld: by"
        " a chance that is nearly certain where a vote may decide, and falls with the lead. After a"
        " fixed number of withheld answers the stream stops."
    ),
    "stable-value": (
        "A query is answered with the class that has the most votes if so many votes would have to"
        " change before another class could have them, with random noise of a two-sided geometric"
        " distribution, that a threshold is passed; otherwise the answer is withheld."
    ),
    RECORD_VOTES: (
        "Votes are counted for each public point and class, and random noise with a Gaussian"
        " distribution on the integers is added to every count."
    ),
    "relabelled-sample": (
        "A secret random part of the records gets new labels, which one rule of a public class"
        " gives and which fit the old ones well; the teachers learn from these. A query is answered"
        " only if its vote is clearly decided, judged against a noisy threshold; after a fixed"
        " number of withheld answers the stream stops."
    ),
}
_NOT_SHOWN = {"kind", "method", "noise", "guarantee", "moved", "spare_rows", "sample", "rows"}
_PARAMETERS = {
    "sigma": ("standard deviation of the noise", "votes"),
    "n_candidates": ("candidates", ""),
    "scale": ("scale of the noise", "votes"),
    "values": ("released number", ""),
    "hypotheses": ("class of hypotheses", ""),
    "n_public": ("public points that made it finite", ""),
    "points_sha256": ("SHA-256 of these points, as doubles row by row", ""),
    "n_queries": ("queries it was calibrated for", ""),
    "n_classes": ("classes", ""),
    "votes_per_record": ("public points that one record votes for", ""),
    "expected_uncovered": ("share of uncovered records where they are like the public points", ""),
    "n_teachers": ("teachers it was calibrated for", ""),
    "release": ("what is released", ""),
    "weights": ("chances of the minority's label, margin by margin", ""),
    "threshold_scale": ("scale of the noise on the threshold", "votes"),
    "query_scale": ("scale of the noise on each query", "votes"),
    "threshold": ("threshold", "votes"),
    "threshold_sigma": ("standard deviation of the noise at the threshold", "votes"),
    "max_answers": ("answers after which it stops", ""),
    "confidence": ("probability from which on a prediction counts as confirmed", ""),
    "max_abstentions": ("withheld answers after which it stops", ""),
    "sampled": ("sampled", ""),
    "out_of": ("out of", ""),
    "relabel_epsilon": ("parameter of the relabelling", ""),
}


def student_confidence(student: Any, X_public: Any) -> FloatArray:
    """Return the student's highest class probability on at most ten thousand public points.

    Parameters
    ----------
    student : fitted classifier
        With `predict_proba`.
    X_public : array, sparse matrix or frame of shape (n, n_features)
        Public points; where there are more, every so many-th is taken.

    Raises
    ------
    DataError
        If the student gives no probabilities.
    """
    if not hasattr(student, "predict_proba"):
        raise DataError(f"{type(student).__name__} gives labels without probabilities.")
    step = max(1, math.ceil(X_public.shape[0] / _MOST_POINTS))
    points = X_public.iloc[::step] if hasattr(X_public, "iloc") else X_public[::step]
    try:
        shares = np.asarray(student.predict_proba(points), dtype=np.float64)
    except MemoryError:  # what memory there is, is no property of the student
        raise
    # the student may be anybody's; a picture less is no reason to lose a release
    except Exception as error:
        raise DataError(
            f"{type(student).__name__} gave no probabilities ({type(error).__name__})."
        ) from None
    confidence = shares.max(axis=1) if shares.ndim == 2 and shares.size else np.empty(0)
    if not confidence.size or not np.isfinite(confidence).all():
        raise DataError(f"{type(student).__name__} gave probabilities that are no numbers.")
    return confidence


@functools.cache
def page_template() -> Any:
    """Return the page's template, which takes longer to compile than to fill in.

    Raises
    ------
    MissingExtraError
        If jinja2 is not installed.
    """
    # everything is escaped, since class names, purposes and file names are a stranger's text; only
    # pictures that were drawn here enter as markup
    jinja2 = require_extra("jinja2", "report")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(number=number_text, shown=shown)
    return environment.from_string(
        files("secretballot.report.release").joinpath("report.html.j2").read_text(encoding="utf-8")
    )


def render_page(
    released: ReleasedLabels | ReleasedTable,
    *,
    student: Any = None,
    X_public: Any = None,
    files_written: Mapping[str, str] | None = None,
    story: QueryStory | None = None,
    schema: Mapping[str, Any] | None = None,
    metrics: Metrics | TableMetrics | None = None,
) -> str:
    """Return the report of a release as one HTML page that needs nothing else.

    Parameters
    ----------
    released : ReleasedLabels or ReleasedTable
        What left the door, with its certificate.
    student : fitted classifier, or student of tables, optional
        Trained on it.
    X_public : array or frame of shape (n, n_features), optional
        Public points on which the student's confidence is drawn.
    files_written : mapping, optional
        Name of each file beside the page, with what it is.
    story : QueryStory, optional
        How the queries were chosen; its pictures get a section of their own.
    schema : mapping, optional
        Public description of the columns, as JSON values: for their names in pictures.
    metrics : Metrics or TableMetrics, optional
        Of the student on public labelled points.

    Raises
    ------
    MissingExtraError
        If matplotlib or jinja2 is not installed.
    ParameterError
        If something else than released labels or a released table is given.
    DataError
        If the story is not the one of these labels.
    """
    if not isinstance(released, ReleasedLabels | ReleasedTable):
        raise ParameterError(
            Parameter("released"),
            f" is a {type(released).__name__}; a page is made from ReleasedLabels, or a"
            " ReleasedTable.",
        )
    template = page_template()
    certificate = released.certificate
    markup = require_extra("jinja2", "report").utils.markupsafe.Markup
    drawn: list[tuple[str, str, str, str]] = []
    if isinstance(released, ReleasedTable):
        pictures, captions = table_pictures(released, student, X_public)
        pictures["budget"] = draw_budget(certificate)
        captions["budget"] = _budget_caption(certificate)
    else:
        pictures, captions = _pictures_and_captions(released, student, X_public)
        drawn = _query_pictures(story, released)
    if has_moments(certificate):
        pictures |= moments_pictures(certificate, student, X_public, schema)
        captions |= moments_captions(certificate)
    page: str = template.render(
        certificate=certificate,
        title=name_of_data(certificate),
        about=about_rows(certificate),
        quality=_quality_sentences(released, student, X_public),
        issued=_moment_text(certificate["issued"]),
        classes=[shown(value) for value in certificate["released"]["classes"]],
        facts=_fact_values(released),
        guarantee=_guarantee_values(certificate),
        mechanism=_mechanism_rows(certificate),
        events=_event_rows(certificate),
        plan=plan_words(certificate),
        choices=choices_words(certificate),
        choice_rows=choice_rows(certificate),
        # the pictures are the package's own SVG: the template must not escape them
        pictures={name: markup(svg) for name, svg in pictures.items()},
        captions=captions,
        queries=[(name, title, markup(svg), caption) for name, title, svg, caption in drawn],
        student=None if student is None else _learner_name(student),
        **_metrics_values(metrics),
        verification=verify_certificate(certificate),
        files_written=dict(files_written or {}),
        count=count_text,
    )
    return page


def _quality_sentences(
    released: ReleasedLabels | ReleasedTable, student: Any, X_public: Any
) -> list[str]:
    if isinstance(released, ReleasedTable):
        return table_quality(released, student, X_public)
    return quality_points(released, student, X_public)


def _metrics_values(metrics: Metrics | TableMetrics | None) -> dict[str, Any]:
    """Return what the page shows of metrics: those of classes, or of a table, and sentences."""
    if metrics is None or isinstance(metrics, Metrics):
        sentences = [] if metrics is None else metrics_sentences(metrics)
        return {"metrics": metrics, "metrics_sentences": sentences, "metrics_rows": []}
    return {
        "metrics": None,
        "metrics_sentences": table_metrics_sentences(metrics),
        "metrics_rows": table_metrics_rows(metrics),
    }


def _pictures_and_captions(
    released: ReleasedLabels, student: Any, X_public: Any
) -> tuple[dict[str, str], dict[str, str]]:
    """Return pictures by name, and the sentence for each, or for why there is none."""
    pictures = {"budget": draw_budget(released.certificate), "votes": draw_votes(released)}
    captions = {"budget": _budget_caption(released.certificate), "votes": _votes_caption(released)}
    if student is None:
        captions["confidence"] = "No student was trained in this run."
    elif X_public is None:
        captions["confidence"] = "No public points were given to draw it on."
    else:
        try:
            confidence = student_confidence(student, X_public)
        except DataError as error:
            captions["confidence"] = str(error)
        else:
            # our own student of noisy counts predicts votes; any other predicts the class itself
            of_votes = hasattr(student, "predict_shares")
            pictures["confidence"] = draw_confidence(
                confidence, released.n_classes, of_votes=of_votes
            )
            meaning = (
                "Which share of the teachers it expects behind"
                if of_votes
                else "How sure the student is of"
            )
            captions["confidence"] = (
                f"{meaning} its label, on {count_text(len(confidence), 'public point')}. A guess"
                f" would have {1 / released.n_classes:.2g}; the dashed line halves the points. Sure"
                " is not right: the picture shows no accuracy."
            )
    return pictures, captions


def _query_pictures(
    story: QueryStory | None, released: ReleasedLabels
) -> list[tuple[str, str, str, str]]:
    """Return name, title, picture and caption of all that is drawn of a story."""
    if story is None:
        return []
    check_story(story, released)
    captions = query_captions(story, released)
    drawn = draw_query_pictures(story, released)
    return [
        (name, QUERY_TITLES[name], picture.inline(), captions[name])
        for name, picture in drawn.items()
    ]


def _budget_caption(certificate: Mapping[str, Any]) -> str:
    composition = certificate["composition"]
    budget, spent = composition["budget"], composition["spent_after"]
    left = max(0.0, budget["epsilon"] - spent["epsilon"])
    if composition["durable"] and stands_alone(certificate):
        return (
            f"This release has an account of its own: epsilon {number_text(spent['epsilon'])} and"
            f" delta {number_text(spent['delta'])} for each {composition['unit']}. Whether there"
            " are other releases from the same data, whose prices add to this one, it does not"
            " tell; ask the controller of the data."
        )
    # only plain sums can be divided among releases; a Renyi filter prices them all together
    if composition["kind"] == "basic":
        before = max(0.0, spent["epsilon"] - certificate["epsilon"])
        others = "other releases and choices" if certificate.get("choices") else "earlier releases"
        words = (
            f"{others} {number_text(before)} (grey), this release"
            f" {number_text(certificate['epsilon'])} (blue)"
        )
    else:
        words = f"all releases so far, this one included, {number_text(spent['epsilon'])} (blue)"
    return (
        f"Of epsilon {number_text(budget['epsilon'])} for each {composition['unit']} of this"
        f" dataset: {words}, left {number_text(left)} (white). Of delta"
        f" {number_text(budget['delta'])}, {number_text(spent['delta'])} is spent."
    )


def _votes_caption(released: ReleasedLabels) -> str:
    # what was released decides what the picture shows: labels of one model, labels alone, one
    # count for two classes, or a count for each of several
    abstained = int((~released.answered).sum())
    if is_chosen(released.certificate):
        return f"What the chosen model says of {count_text(len(released.queries), 'public point')}."
    if has_moments(released.certificate):
        return f"What the model says of {count_text(len(released.queries), 'public point')}."
    if released.noisy_counts is None:
        return (
            f"The released labels of {count_text(len(released.queries), 'query')}; {abstained:,}"
            " got no answer. The counts behind them were not released."
        )
    sigma = f"{released.sigma:.3g}"
    if released.n_classes == 2 and not is_by_record(released.certificate):
        return (
            "The released noisy counts. From the dashed line,"
            f" {number_text(released.n_teachers / 2)} votes, on, the label is"
            f" {shown(released.classes[1])}; the grey band is one standard deviation of the noise,"
            f" {sigma} votes, to either side: inside it the noise may well have decided."
        )
    return (
        "How far the winning class was ahead in the released noisy counts. The grey band is one"
        f" standard deviation of the noise on a difference of two counts (each has {sigma} votes):"
        " inside it the noise may well have decided."
    )


def _learner_name(student: Any) -> str:
    """Return the name of what learnt; one that numbers the classes for it is left out."""
    match type(student).__name__:
        case "NumberedClassesClassifier":
            return type(student.classifier_).__name__
        case "NumberStudent":
            return _last_name(student.regressor)
        case "LabelsStudent":
            return " and ".join(dict.fromkeys(map(_last_name, student.students)))
    return type(student).__name__


def _last_name(learner: Any) -> str:
    """Return the name of a learner, of a pipeline that of its last step."""
    return type(learner.steps[-1][1] if hasattr(learner, "steps") else learner).__name__


def _moment_text(issued: str) -> str:
    """Return a time as people write it; anything unusual as it stands."""
    day, _, time = issued.partition("T")
    return f"{day} {time[:5]} UTC" if time.endswith("+00:00") else shown(issued)


def _fact_values(released: ReleasedLabels | ReleasedTable) -> dict[str, Any]:
    certificate = released.certificate
    terms = stated(certificate)
    drawn = CONFIDENCE if CONFIDENCE in terms else terms.get("noise", terms["kind"])
    sentence = _SENTENCES.get(terms["method"], _SENTENCES.get(drawn))
    unit = unit_noun(certificate["unit"])
    # where labels alone are private, the features are public, too
    public = "the features and the number" if unit == "label" else "the number"
    relation = {
        "add-remove": f"adding or removing one {unit}",
        "replace-one": f"replacing one {unit} by another, {public} of records being public",
    }
    return {
        "unit": unit,
        "unit_words": _unit_words(certificate["unit"], certificate["unit_column"]),
        "relation_words": relation[certificate["neighbours"]],
        "n_teachers": certificate["released"]["n_teachers"],
        "votes_per_record": (terms["votes_per_record"] if is_by_record(certificate) else 0),
        "candidates": terms["n_candidates"] if is_chosen(certificate) else 0,
        "chosen": chosen_words(certificate) if is_chosen(certificate) else "",
        "moments": moments_facts(certificate) if has_moments(certificate) else {},
        "moments_words": moments_words(certificate) if has_moments(certificate) else "",
        "unseen": UNSEEN_TEACHERS in certificate["assumptions"],
        "sentence": sentence or "Random noise is added before anything is released.",
        **_answer_values(released),
    }


def _answer_values(released: ReleasedLabels | ReleasedTable) -> dict[str, Any]:
    """Return what the page says of the answers: how many there are, and what."""
    certificate = released.certificate
    if isinstance(released, ReleasedTable):
        asked = len(released.rows)
        silent = {"coverage_warning": "", "coverage_words": "", "counts": False}
        facts = table_facts(certificate)
        counted = {"queries": asked, "answered": asked, "sentence": facts["sentence"]}
        return {"table": facts, **counted, **silent}
    return {
        "table": {},
        "queries": len(released.queries),
        "answered": int(released.answered.sum()),
        "coverage_warning": coverage_warning(released),
        "coverage_words": votes_coverage_words(released) if is_by_record(certificate) else "",
        "counts": released.noisy_counts is not None,
    }


def _unit_words(unit: str, column: str | None) -> str:
    if unit == "label":
        return "the label of one record"
    if column:
        return f"all records of one id in the column “{shown(column)}”"
    return "all records of one person, or other declared unit" if unit == "user" else "one record"


def _guarantee_values(certificate: Mapping[str, Any]) -> dict[str, Any]:
    epsilon, delta = total_price(certificate)
    factor = math.exp(min(epsilon, 700.0))  # a larger exponent would overflow
    return {
        "epsilon": epsilon,
        "delta": delta,
        "factor": at_most_text(factor),
        "posterior": percent_text(posterior_percent(epsilon)),
        "one_in": one_in(delta),
        "caution": caution(certificate),
        "total": total_words(certificate),
        "tests": [
            (percent_text(100 * alarm), percent_text(100 * power_bound(epsilon, delta, alarm)))
            for alarm in _FALSE_ALARMS
        ],
    }


def _mechanism_rows(certificate: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the mechanism's parameters as pairs of words; the budget has a place of its own."""
    if has_moments(certificate):
        return moments_rows(stated(certificate))
    if has_table(certificate):
        return table_rows(stated(certificate))
    rows = []
    for key, value in stated(certificate).items():
        # the weights of a table of abstentions are long, and follow from its charge
        if key in _NOT_SHOWN or value is None or (key == "weights" and isinstance(value, str)):
            continue
        label, unit = _PARAMETERS.get(key, (key.replace("_", " "), ""))
        text = _chances_text(value) if key == "weights" else value_text(value)
        rows.append((shown(label), f"{text} {unit}".strip()))
    return rows


def _chances_text(weights: Sequence[int]) -> str:
    """Return a table of chances in words; its numbers are in the certificate."""
    first, last = (number_text(weight / 2**CHANCE_BITS) for weight in (weights[0], weights[-1]))
    return f"{count_text(len(weights), 'chance')}, from {first} down to {last}"


def _event_rows(certificate: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return every event with its parameters and what it would cost alone."""
    events = certificate["events"]
    alone = [certificate["price"]["delta_recomputed"]]
    if len(events) > 1:
        alone = [delta_upper([event_in(event)], certificate["epsilon"]) for event in events]
    return [
        {
            "kind": shown(event["kind"]),
            "parameters": _parameters_text(event),
            "delta": number_text(delta),
        }
        for event, delta in zip(events, alone, strict=True)
    ]


def _parameter_text(key: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return f"({_parameters_text(value)})"
    return _chances_text(value) if key == "weights" else value_text(value)


def _parameters_text(event: Mapping[str, Any]) -> str:
    """Return an event's parameters in words, those of an event inside in brackets."""
    return ", ".join(
        f"{key.replace('_', ' ')} {_parameter_text(key, value)}"
        for key, value in event.items()
        if key != "kind" and value is not None
    )
