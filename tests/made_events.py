"""Events by the order of their parameters, for tests that make many."""

from functools import reduce

from secretballot.privacy.accounting import (
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
    Stream,
    TableChances,
    TableStream,
    Totals,
    VectorSum,
)


def counts_event(sigma, shifts):
    return Counts(sigma=sigma, shifts=shifts)


def label_event(sigma, queries, n_teachers=None):
    chances = GaussianChances(sigma=sigma, n_teachers=n_teachers)
    return BinaryLabels(chances=chances, queries=queries)


def table_event(weights, queries, n_teachers):
    chances = TableChances(weights=weights, n_teachers=n_teachers)
    return BinaryLabels(chances=chances, queries=queries)


def class_event(sigma, queries):
    return ClassLabels(sigma=sigma, queries=queries)


def confident_event(threshold_sigma, sigma, queries, answers, n_classes):
    return Confident(
        threshold_sigma=threshold_sigma,
        sigma=sigma,
        queries=queries,
        answers=answers,
        n_classes=n_classes,
    )


def sums_event(sigma, squared_sensitivity, coordinates, count=1):
    return VectorSum(
        sigmas=(sigma,),
        squared_sensitivity=squared_sensitivity,
        coordinates=coordinates,
        count=count,
    )


def pure_event(epsilon, count):
    return Pure(epsilon=epsilon, count=count)


def ranged_event(epsilon, count):
    return BoundedRange(epsilon=epsilon, count=count)


def stable_event(scale, threshold, count):
    return StableTests(scale=scale, threshold=threshold, count=count)


def sparse_event(threshold_scale, query_scale, threshold, abstentions, refresh):
    return SparseStream(
        threshold_scale=threshold_scale,
        query_scale=query_scale,
        threshold=threshold,
        abstentions=abstentions,
        refresh=refresh,
    )


def abstention_event(order, charge, false_answer, abstentions):
    return TableStream(
        order=order, charge=charge, false_answer=false_answer, abstentions=abstentions
    )


def sampled_event(stream: Stream, sampled, out_of, relation, relabel_epsilon=1.0):
    return Sampled(
        stream=stream,
        sampled=sampled,
        out_of=out_of,
        relation=relation,
        relabel_epsilon=relabel_epsilon,
    )


def totals_of(rule, releases):
    """Return the sums of a filter over releases, as pairs of events and price."""
    return reduce(Totals.plus, (rule.costs(*one) for one in releases), Totals())


def admits(rule, releases, new):
    return rule.admits(totals_of(rule, releases), *new)


def json_of(event):
    return event.model_dump(mode="json")
