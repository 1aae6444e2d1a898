"""Which services there are: those of the bridge, and those that other packages name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest

import app.services
from app.errors import ConfigurationError
from app.services import BUILT_IN, GROUP, label_of, registered_services
from app.services.service import Presence, Service
from app.services.slack import SERVICE as SLACK

CHAT: object = replace(SLACK, name="chat", label="Chat", build=lambda _context: Presence(()))
TAKEN: object = replace(SLACK, name="web")
ODD: object = replace(SLACK, name="Two-Words")
NONE: object = "slack"


@pytest.fixture(autouse=True)
def cold() -> Iterator[None]:
    """Look for services anew in this test, and after it."""
    caches = (registered_services, app.services._by_name)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


def offer(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    points = [EntryPoint(name.lower(), f"{__name__}:{name}", GROUP) for name in names]
    monkeypatch.setattr("app.services.entry_points", lambda group: points * (group == GROUP))


def test_without_other_packages_there_are_those_of_the_bridge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offer(monkeypatch)

    assert tuple(service.name for service in registered_services()) == BUILT_IN


def test_a_service_of_another_package_comes_last_and_has_its_label(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offer(monkeypatch, "CHAT")

    assert isinstance(CHAT, Service)
    assert registered_services()[-1] is CHAT
    assert [label_of(name) for name in ("chat", "web", "gone")] == ["Chat", "", "gone"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("SLACK", "'slack' is taken"),
        ("TAKEN", "'web' is taken"),
        ("ODD", "not a Service"),
        ("NONE", "not a Service"),
        ("MISSING", "cannot be imported"),
    ],
)
def test_what_cannot_be_used_refuses_to_start(
    monkeypatch: pytest.MonkeyPatch, name: str, problem: str
) -> None:
    offer(monkeypatch, name)

    with pytest.raises(ConfigurationError, match=problem):
        registered_services()
