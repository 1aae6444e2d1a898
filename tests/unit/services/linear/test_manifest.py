"""The manifest is one that Linear's form accepts, and hears what the bridge reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import graphql
import pytest

from app.services.linear.manifest import EVENTS, manifest


def write(name: str, agent: str = "codex") -> dict[str, Any]:
    return manifest(
        agent,
        name=name,
        description="",
        base_url="https://bridge.example.com",
        path="/hook",
        install="https://bridge.example.com/install/linear/codex",
    )


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Codex", "Codex"),
        ("Codex for Linear", "Codex for"),
        ("https://codex.example", "codex.example"),
        ("x" * 100, "x" * 80),
        ("Linear", "codex agent"),
        ("C", "codex agent"),
    ],
)
def test_the_name_is_one_that_linear_accepts(name: str, shown: str) -> None:
    assert write(name)["oauth"]["client_name"] == shown


def test_an_agent_that_is_called_like_linear_gets_a_neutral_name() -> None:
    assert write("Linear", "linear-helper")["oauth"]["client_name"] == "Coding agent"


def test_the_manifest_has_what_linear_requires() -> None:
    made = write("Codex")

    assert made["schemaVersion"] == "1.0.0"
    assert made["developer"]["name"]
    assert made["oauth"]["client_uri"] == "https://bridge.example.com"
    assert "authorization_code" in made["oauth"]["grant_types"]
    assert made["webhook"]["resourceTypes"] == list(EVENTS)


def test_the_events_are_ones_that_an_application_can_subscribe_to() -> None:
    path = os.environ.get("TEST_LINEAR_SCHEMA")
    if path is None:
        pytest.skip("TEST_LINEAR_SCHEMA does not name Linear's published schema")
    kinds = graphql.build_schema(Path(path).read_text()).type_map["WebhookResourceType"]

    assert isinstance(kinds, graphql.GraphQLEnumType)
    assert set(EVENTS) <= set(kinds.values)
