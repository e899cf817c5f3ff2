"""Lists of events in neutral encodings: kind and parameters, made from a fixed public seed."""

import hashlib
import json
import math
from typing import Any

from golden.dice import Dice

LISTS = 10_000
FEW = 300  # the first ones, small enough for every run of the tests

NeutralEvent = dict[str, Any]
CHEAP = ("counts", "sums", "pure", "bounded-range", "stable-tests", "sparse-stream", "table-stream")
GAMES = ("binary-labels", "class-labels", "table-labels", "confident")
MAY_FAIL = ("stable-tests", "sparse-stream", "table-stream", "sampled")
KINDS = (*CHEAP, *GAMES, "sampled")


def a_list(number: int) -> dict[str, Any]:
    """Return the events of this number, and the epsilon and the delta at which they are priced."""
    dice, few = Dice("golden prices", number), number < FEW
    kinds = [KINDS[number % len(KINDS)]]
    # games beside others take seconds
    beside = dice.pick((0, 0, 0, 0, 1, 1, 1, 2, 2, 3))
    if kinds[0] not in CHEAP:
        beside = 0 if few or dice.uniform() < 0.9 else 1
    for _ in range(beside):
        quick = CHEAP if few and beside > 1 else (*CHEAP, "binary-labels")
        slow = dice.uniform() < 0.03 and beside == 1
        kinds.append(dice.pick(GAMES if slow else quick))
    loss = dice.log_uniform(0.3 if few else 0.03, 5)  # about what each event may cost, in nats
    events = []
    games = len(kinds) > 1 and any(kind in GAMES for kind in kinds)
    for kind in kinds:
        share, most = loss / math.sqrt(len(kinds)), 12 if few or games else 400
        if kind in GAMES:
            share, most = (max(0.3, share), most) if games else (share, min(most, 100))
        elif len(kinds) > 1:
            most = min(most, 60)
        events.append(an_event(dice, kind, share, most))
    may_fail = any(kind in MAY_FAIL for kind in kinds)
    delta = dice.log_uniform(1e-9 if may_fail else 1e-12, 1e-2)
    if all(kind in ("pure", "bounded-range") for kind in kinds) and dice.uniform() < 0.5:
        delta = 0.0
    epsilon = min(20.0, max(0.01, float(f"{loss * dice.log_uniform(0.3, 4):.3g}")))
    return {"events": events, "epsilon": epsilon, "delta": delta}


def an_event(dice: Dice, kind: str, loss: float, most: int) -> NeutralEvent:
    """Draw an event of a kind, with at most so many answers."""
    n = dice.log_integer(1, most)
    many = n * dice.pick((1, 1, 1, 50 if most > 12 else 1))  # what costs no work may be more
    each = loss / math.sqrt(n)

    def scale(steps: int, at: float = loss, least: float = 0.3) -> float:
        return float(f"{max(least, math.sqrt(steps) / at * dice.log_uniform(0.7, 2)):.3g}")

    match kind:
        case "counts":
            return {"kind": kind, "sigma": scale(many), "shifts": many}
        case "binary-labels":
            teachers = dice.pick((None, None, dice.log_integer(3, 2000)))
            sigma = scale(n, least=1.0)
            return {"kind": kind, "sigma": sigma, "queries": n, "teachers": teachers}
        case "class-labels":
            return {"kind": kind, "sigma": scale(2 * n, least=1.5), "queries": n}
        case "table-labels":
            teachers = dice.log_integer(4, 500)
            ratio = round(1024 * math.exp(-max(0.02, min(1.5, each))))
            even, weights = teachers % 2 == 0, [2**52]
            while len(weights) < min(60, teachers // 2 + 1) and weights[-1] > 2**20:
                weights.append(weights[-1] * ratio // 1024)
            return {
                "kind": kind,
                "weights": weights if even else weights[1:],
                "queries": min(n, 60),
                "teachers": teachers,
            }
        case "confident":
            answers = dice.integer(1, n)
            return {
                "kind": kind,
                "threshold_sigma": scale(2 * n, least=1.5),
                "sigma": scale(4 * answers, least=1.5),
                "queries": n,
                "answers": answers,
                "classes": dice.pick((2, 2, 3, 10)),
            }
        case "pure" | "bounded-range":
            epsilon = float(f"{each * dice.log_uniform(0.2, 1):.3g}")
            return {"kind": kind, "epsilon": epsilon, "count": n}
        case "stable-tests":
            noise, count = scale(1, at=each), min(n, 30)
            threshold = math.ceil(noise * dice.log_uniform(10, 60))
            return {"kind": kind, "scale": noise, "threshold": threshold, "count": count}
        case "sparse-stream":
            noise, abstentions = scale(4, at=each), min(n, 30)
            return {
                "kind": kind,
                "threshold_scale": noise,
                "query_scale": float(f"{noise * dice.pick((1, 2, 2, 3)):.3g}"),
                "threshold": math.ceil(noise * dice.log_uniform(20, 120)),
                "abstentions": abstentions,
            }
        case "table-stream":
            order, abstentions = dice.log_uniform(1.5, 200), min(n, 30)
            return {
                "kind": kind,
                "order": order,
                "charge": float(f"{max(1e-9, min(60.0, order * each**2 / 2)):.3g}"),
                "false_answer": dice.log_uniform(1e-15, 1e-8),
                "abstentions": abstentions,
            }
        case "sampled":
            sampled = dice.log_integer(10, 5000)
            return {
                "kind": kind,
                "stream": an_event(dice, dice.pick(("sparse-stream", "table-stream")), loss, most),
                "sampled": sampled,
                "out_of": sampled * dice.log_integer(1, 100),
                "relation": dice.pick(("add-remove", "replace-one")),
                "relabel_epsilon": dice.log_uniform(0.1, 4),
            }
    squared, stages = dice.log_integer(1, 10**8), dice.integer(1, 4)
    return {
        "kind": "sums",
        "sigmas": [scale(squared * stages) for _ in range(stages)],
        "squared": squared,
        "coordinates": dice.log_integer(1, 5000),
    }


def digest_of_lists() -> str:
    """Return a digest of all encodings: recorded prices belong to these lists and no others."""
    whole = hashlib.sha256()
    for number in range(LISTS):
        whole.update(json.dumps(a_list(number), sort_keys=True).encode())
    return whole.hexdigest()
