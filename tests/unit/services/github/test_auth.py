"""The App's private key: what signing in with it costs."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tests.support.github_desk import Desk

pytestmark = pytest.mark.anyio


async def test_the_private_key_is_parsed_once_for_all_calls(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []

    def load(pem: bytes, *given: Any, **options: Any) -> Any:
        loaded.append(pem.decode())
        return load_pem_private_key(pem, *given, **options)

    monkeypatch.setattr("app.services.github.auth.load_pem_private_key", load, raising=False)
    monkeypatch.setattr("jwt.algorithms.load_pem_private_key", load)

    await desk.claude_api.app()
    await desk.claude_api.installed()

    # GitHub's side of the simulation reads the public half by the same function.
    assert loaded.count(desk.apps["claude"].private_pem) == 1
