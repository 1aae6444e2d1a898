"""The probe: it finds what can be read, says so plainly, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.children import probe as module
from app.children.probe import probe
from app.children.sandbox import Bubblewrap, Plain
from tests.unit.children.conftest import World

pytestmark = pytest.mark.anyio

REMEDY = "Install the package `bubblewrap`."


def hidden(world: World) -> dict[str, Path]:
    return {".env": world.dotenv, "DATA_DIR": world.data, "the HOME of codex": world.other_home}


async def test_bubblewrap_is_found_to_isolate(bubblewrap: Bubblewrap, world: World) -> None:
    result = await probe(
        bubblewrap, world.confinement(), env=world.env, hidden=hidden(world), remedy=REMEDY
    )

    assert (result.leaks, result.isolated) == ((), True)
    assert result.words == "isolated (bubblewrap)"


async def test_without_a_sandbox_it_says_what_can_be_read(world: World) -> None:
    result = await probe(
        Plain(), world.confinement(), env=world.env, hidden=hidden(world), remedy=REMEDY
    )

    assert {".env", "DATA_DIR", "the HOME of codex"} <= set(result.leaks)
    assert not result.isolated
    assert result.words.startswith("not isolated: it can read .env, DATA_DIR, the HOME of codex")
    assert result.words.endswith(REMEDY)


async def test_one_forgotten_mask_is_named(bubblewrap: Bubblewrap, world: World) -> None:
    # The folder around a secret would hide it too: all of this is in one temporary folder.
    confinement = world.confinement(masked=(world.data,), secrets=())
    others = {name: path for name, path in hidden(world).items() if name != ".env"}

    result = await probe(bubblewrap, confinement, env=world.env, hidden=others)

    assert result.leaks == ("the HOME of codex",)
    assert result.words == "not isolated: it can read the HOME of codex."


async def test_an_agent_that_cannot_write_its_workspace_is_not_called_isolated(
    bubblewrap: Bubblewrap, world: World
) -> None:
    world.workspace.rmdir()

    result = await probe(
        bubblewrap, world.confinement(cwd=world.home), env=world.env, hidden=hidden(world)
    )

    assert not result.isolated
    assert result.words.startswith("not isolated: the probe could not")


async def test_a_sandbox_that_does_nothing_at_all_is_not_called_isolated(world: World) -> None:
    result = await probe(
        Bubblewrap("/bin/true"), world.confinement(), env=world.env, hidden=hidden(world)
    )

    assert not result.isolated


async def test_a_sandbox_that_hangs_is_given_up(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PROBE_SECONDS", 0.1)
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\nexec sleep 1000\n")
    fake.chmod(0o755)

    result = await probe(Bubblewrap(str(fake)), world.confinement(), env=world.env, hidden={})

    assert result.words.startswith("not isolated: the probe gave no answer within 0.1 s")


async def test_nothing_is_left_of_the_canaries(world: World) -> None:
    before = sorted(world.data.rglob("*"))

    await probe(Plain(), world.confinement(), env=world.env, hidden=hidden(world))

    assert sorted(world.data.rglob("*")) == before


async def test_without_a_sandbox_it_is_not_isolated_even_if_nothing_could_be_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_leaks", lambda *_: ())

    result = await probe(Plain(), world.confinement(), env=world.env, hidden={}, remedy=REMEDY)

    assert result.words == f"not isolated: it runs without a sandbox. {REMEDY}"
