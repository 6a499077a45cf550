"""The page's API against requests that schemathesis makes of its OpenAPI description: an answer, never a fault."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tapnet.explorer import server
from tapnet.explorer.results import Results
from tapnet.explorer.views import Explorer

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis: pip install schemathesis")

SECONDS = 20.0  # for an answer


@pytest.fixture(scope="module")
def api(explorer: Explorer, results: Results) -> tuple[TestClient, list[Any]]:
    """A visitor, and every operation of the API."""
    made = []

    class Seen(server.FastAPI):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            made.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "FastAPI", Seen)
        app = server.make_app(explorer, results=results)
    schema = schemathesis.openapi.from_dict(made[0].openapi())
    schema.config.generation.update(modes=list(schemathesis.GenerationMode))
    client = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)
    return client, [found.ok() for found in schema.get_all_operations()]


def test_every_operation_answers_whatever_is_asked(api: tuple[TestClient, list[Any]]) -> None:
    client, operations = api
    paths = {operation.path for operation in operations}
    assert paths >= {"/api/model", "/api/graphs/{number}", "/api/graph", "/api/attribution", "/api/results"}
    for operation in operations:

        @given(operation.as_strategy(), st.binary(max_size=300))
        @settings(suppress_health_check=list(HealthCheck))
        def answers(case: Any, body: bytes) -> None:
            began = time.monotonic()
            content = body if case.method == "POST" else None
            answer = client.request(case.method, case.formatted_path, params=dict(case.query or {}), content=content)
            assert answer.status_code < 500, (case, answer.text)
            assert time.monotonic() - began < SECONDS
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            if answer.status_code >= 400 and answer.headers["content-type"] == "application/json":
                assert 0 < len(answer.json()["error"]) <= server.LONGEST_MESSAGE

        answers()
