"""Events by the order of their parameters, for tests that make many, and sums over releases."""

from functools import reduce

from secretballot.accounting import (
    BinaryLabels,
    BoundedRange,
    ClassLabels,
    Confident,
    Counts,
    GaussianChances,
    Pure,
    Sampled,
    SparseStream,
    StableTests,
    TableChances,
    TableStream,
    Totals,
    VectorSum,
)


def _by_order(kind):
    names = [name for name in kind.model_fields if name != "kind"]

    def made(*values, **named):
        return kind(**dict(zip(names, values, strict=False)), **named)

    return made


counts_event, class_event, confident_event = map(_by_order, (Counts, ClassLabels, Confident))
pure_event, ranged_event, stable_event = map(_by_order, (Pure, BoundedRange, StableTests))
sparse_event, abstention_event = map(_by_order, (SparseStream, TableStream))
_labels, _noise, _table, _sums = map(
    _by_order, (BinaryLabels, GaussianChances, TableChances, VectorSum)
)


def label_event(sigma, queries, n_teachers=None):
    return _labels(_noise(sigma, n_teachers), queries)


def table_event(weights, queries, n_teachers):
    return _labels(_table(weights, n_teachers), queries)


def sums_event(sigma, *rest):
    return _sums((sigma,), *rest)


def sampled_event(stream, sampled, out_of, relation, relabel_epsilon=1.0):
    return _by_order(Sampled)(stream, sampled, out_of, relation, relabel_epsilon)


def totals_of(rule, releases):
    """Return the sums of a filter over releases, as pairs of events and price."""
    return reduce(Totals.plus, (rule.costs(*one) for one in releases), Totals())


def admits(rule, releases, new):
    return rule.admits(totals_of(rule, releases), *new)


def json_of(event):
    return event.model_dump(mode="json")


def pattern_of(stream):
    """Return what a stream of above and below costs where nothing else is told."""
    threshold, query = 1 / stream.threshold_scale, 2 / stream.query_scale
    return pure_event(threshold + query, stream.abstentions)
