"""The API's description says what the API does."""

from __future__ import annotations

import json

from godwit.net.admin.api import ENDPOINTS
from godwit.net.admin.openapi import described


def test_every_endpoint_is_described_and_every_reference_leads_somewhere() -> None:
    told = described()
    assert set(told["paths"]) == {f"/v1/{one.path}" for one in ENDPOINTS}
    text = json.dumps(told)
    names = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= set(told["components"]["schemas"])
    for one in ENDPOINTS:
        (method,) = told["paths"][f"/v1/{one.path}"]
        assert method == ("get" if one.body is None else "post")
