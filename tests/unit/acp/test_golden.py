"""What real agents send, in the shapes that were seen, and what the bridge makes of it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import pytest
from acp.schema import SessionNotification

from app.acp.updates import bridge_update
from app.model.updates import BridgeUpdate

GOLDEN = Path(__file__).parents[2] / "golden"
AGENTS = sorted(path.stem for path in GOLDEN.glob("*.jsonl"))


def messages(agent: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (GOLDEN / f"{agent}.jsonl").read_text().splitlines()]


def words(update: BridgeUpdate | None) -> dict[str, Any] | None:
    """Write an update down as JSON, without the fields that did not change, and bytes as digits."""
    if update is None:
        return None
    fields = {name: value for name, value in asdict(update).items() if value is not None}
    return {type(update).__name__: json.loads(json.dumps(fields, default=bytes.hex))}


@pytest.mark.parametrize("agent", AGENTS)
def test_what_a_real_agent_sends_is_put_into_our_words(agent: str) -> None:
    for message in messages(agent):
        heard = bridge_update(message["says"]["params"]["update"])

        assert words(heard) == message["means"]


@pytest.mark.parametrize("agent", AGENTS)
def test_the_golden_messages_are_of_the_protocol(agent: str) -> None:
    for message in messages(agent):
        SessionNotification.model_validate(message["says"]["params"])


def test_every_kind_of_the_protocol_and_all_our_words_for_it_are_among_them() -> None:
    heard = [message for agent in AGENTS for message in messages(agent)]
    field = SessionNotification.model_fields["update"]
    kinds = {
        get_args(variant.model_fields["session_update"].annotation)[0]
        for variant in get_args(field.annotation)
    }

    assert {message["says"]["params"]["update"]["sessionUpdate"] for message in heard} == kinds
    means = {next(iter(message["means"])) for message in heard if message["means"]}
    # The second is the bridge's own, and the SDK does not know what tells of the third.
    unsaid = {"UnknownUpdate", "NoticeUpdate", "SubagentUpdate"}
    assert means == {kind.__name__ for kind in get_args(BridgeUpdate)} - unsaid
