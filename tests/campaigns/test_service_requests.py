"""What the campaign of hostile requests calls a finding."""

from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from campaigns.service_requests import MARKERS, Campaign

PROBLEM = {"content-type": "application/problem+json"}
ANSWER = {"label": "no", "given": True, "abstained": False, "noisy_count": None}


def found(response: httpx.Response, path: str = "/v1/questions") -> list[str]:
    """Return what a response is called, where 200 and 4XX are announced."""
    app: Any = SimpleNamespace(
        state=SimpleNamespace(
            service=SimpleNamespace(signatures=SimpleNamespace(own="mark", pems={}))
        )
    )
    campaign = Campaign(app, [], 0)
    announced = {"responses": {"200": {}, "4XX": {}}}
    operation = SimpleNamespace(definition=SimpleNamespace(raw=announced))
    campaign._judge(SimpleNamespace(method="POST", path=path, operation=operation), response)
    assert sum(campaign.statuses.values()) == 1
    return [line.partition(":")[0] for line in campaign.found]


def test_answers_and_refusals_that_were_announced_are_no_findings() -> None:
    assert found(httpx.Response(200, json={"answers": [ANSWER]})) == []
    assert found(httpx.Response(422, json={}, headers=PROBLEM)) == []


@pytest.mark.parametrize("marker", MARKERS)
def test_a_private_value_is_found_in_bodies_and_headers(marker: str) -> None:
    hidden = httpx.Response(200, json={"answers": [{**ANSWER, "label": f"a {marker} b"}]})
    assert found(hidden) == ["a private value"]
    told = httpx.Response(422, json={}, headers={**PROBLEM, "x-value": marker})
    assert found(told) == ["a private value"]


def test_errors_of_ours_and_other_shapes_are_found() -> None:
    assert found(httpx.Response(500, json={}, headers=PROBLEM)) == [
        "an error of ours",
        "a status that is not announced",
    ]
    assert found(httpx.Response(201, json={})) == ["a status that is not announced"]
    assert found(httpx.Response(422, json={})) == ["no problem document"]
    more = {"answers": [{**ANSWER, "votes": 17}]}
    assert found(httpx.Response(200, json=more)) == ["another shape"]
