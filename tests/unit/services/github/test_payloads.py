"""A delivery is read from its bytes once, whatever it is asked about."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from pydantic import BaseModel

from app.model.inbound import Delivery
from app.services.github.manifest import EVENTS
from tests.support.github_desk import Desk
from tests.support.github_openapi import GOLDEN

pytestmark = pytest.mark.anyio

INSTALLATION = 7
PRESSED = {
    "check_run": {"id": 5, "external_id": "7:ab-1", "app": {"slug": "claude-bridge"}},
    "requested_action": {"identifier": "stop"},
}
RENAMED = {"changes": {"repository": {"name": {"from": "gadgets"}}}}


def published() -> dict[str, dict[str, Any]]:
    """Collect one payload for every kind of event, and of those for edits and deletions."""
    kinds: dict[str, dict[str, Any]] = {
        **json.loads((GOLDEN / "events.json").read_text()),
        **json.loads((GOLDEN / "news.json").read_text()),
    }
    comment = kinds["issue_comment.created"]
    known = {key: comment[key] for key in ("repository", "sender")}
    changed = {
        name: kinds[of] | {"action": name.partition(".")[2]}
        for name, of in (
            ("issues.edited", "issues.opened"),
            ("issue_comment.deleted", "issue_comment.created"),
            ("pull_request.synchronize", "pull_request.opened"),
            ("pull_request_review.edited", "pull_request_review.submitted"),
            ("pull_request_review_comment.deleted", "pull_request_review_comment.created"),
        )
    }
    return {
        **kinds,
        **changed,
        "check_run.requested_action": known | PRESSED | {"action": "requested_action"},
        "repository.renamed": known | RENAMED | {"action": "renamed"},
        "star.created": known | {"action": "created"},
    }


@pytest.mark.parametrize("name", published())
async def test_a_delivery_is_validated_once(
    desk: Desk, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.installations["claude"].only = str(INSTALLATION)
    payload = published()[name] | {"installation": {"id": INSTALLATION}}
    event, body = name.partition(".")[0], json.dumps(payload).encode()
    delivery = Delivery("github:claude", "one", None, {"event": event}, body, 0.0)
    validated: Counter[bytes] = Counter()
    validate = BaseModel.model_validate_json.__func__  # type: ignore[attr-defined]  # of a class

    def count(model: type[BaseModel], given: bytes) -> BaseModel:
        validated[given] += 1
        found: BaseModel = validate(model, given)
        return found

    monkeypatch.setattr(BaseModel, "model_validate_json", classmethod(count))

    named = desk.claude.naming(delivery)
    desk.claude.parse(delivery)

    assert named is not None
    assert validated == {body: 1}


def test_every_event_that_an_app_hears_of_is_tried() -> None:
    assert {name.partition(".")[0] for name in published()} >= set(EVENTS)
