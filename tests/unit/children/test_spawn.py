"""The descriptors of a child: each is closed once, whatever event loop there is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvloop

from app.children.spawn import ChildCommand, spawn
from app.errors import AgentNotStarted
from tests.unit.children.conftest import World
from tests.unit.children.helpers import BOUND, outcome

LOOPS = {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}
Make = Callable[[], asyncio.AbstractEventLoop]


@pytest.fixture(params=LOOPS)
def loop_factory(request: pytest.FixtureRequest) -> Make:
    return LOOPS[request.param]


@pytest.fixture
def closed_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[int]]:
    """Take every number as soon as it is free, as another thread might; list what goes wrong."""
    wrong: list[int] = []
    taken: set[int] = set()
    close = os.close
    something = tmp_path.joinpath("something").open("w")

    def close_and_take(number: int) -> None:
        if number in taken:
            wrong.append(number)  # somebody had closed it, and somebody else was given it
        try:
            close(number)
        except OSError:
            wrong.append(number)
        taken.add(os.dup2(something.fileno(), number))

    monkeypatch.setattr(os, "close", close_and_take)
    yield wrong
    monkeypatch.undo()
    for number in taken:
        close(number)
    something.close()


def test_no_descriptor_is_closed_twice(
    loop_factory: Make, closed_twice: list[int], world: World
) -> None:
    command = ["sh", "-c", "echo words; echo more words >&2"]

    async def life() -> None:
        for _ in range(3):
            status, said, _ = await outcome(command, world.env, world.workspace)
            assert (status, said) == (0, "words\n")

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(asyncio.wait_for(life(), BOUND))

    assert closed_twice == []


def descriptors() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208 - their numbers


def test_no_descriptor_is_left_open(loop_factory: Make, world: World) -> None:
    async def life() -> None:
        await outcome(["true"], world.env, world.workspace)
        before = descriptors()
        for _ in range(3):
            await outcome(["cat", os.devnull], world.env, world.workspace)
            with pytest.raises(AgentNotStarted):
                await spawn(
                    ChildCommand(("/no/such/command",)),
                    name="x",
                    env=world.env,
                    cwd=world.workspace,
                )
        assert descriptors() == before

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(asyncio.wait_for(life(), BOUND))
