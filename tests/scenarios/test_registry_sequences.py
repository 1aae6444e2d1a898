"""Random sequences of changes, messages, kills and restarts: nothing is lost, no secret shown."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.features.agents.changes import AgentChanges
from tests.support.bridge import DEMO
from tests.support.house import PLATFORM, House
from tests.support.postgres import read_store

NAMES = st.sampled_from(["ada", "bob", "cleo"])
AGENTS = st.sampled_from(["demo", "ada", "bob", "cleo"])
PLACES = st.sampled_from(["C1:1", "C1:2"])
Steps = list[tuple[tuple[Any, ...], bool]]
"""What happens, and whether it is over before the next begins."""
ENTRY = {"command": DEMO, "sandbox": "none"}
SECRET = "sk-{name}-{number}-of-the-sequence-4711"
TOKEN = "xoxb-{name}-{number}-of-the-sequence-4711"

USUAL = (
    st.tuples(st.just("add"), NAMES, st.booleans()),
    st.tuples(st.just("change"), NAMES, st.sampled_from(["env", "connect", "disconnect"])),
    st.tuples(st.just("rename"), NAMES, NAMES),
    st.tuples(st.just("remove"), NAMES),
    st.tuples(st.just("default"), AGENTS),
    st.tuples(st.just("say"), PLACES, st.one_of(st.none(), AGENTS)),
    st.tuples(st.just("say"), PLACES, st.one_of(st.none(), AGENTS)),
    st.tuples(st.just("go on")),
    st.tuples(st.just("kill")),
    st.tuples(st.just("restart")),
)
OVER_HTTP = (st.tuples(st.just("ask"), AGENTS), st.tuples(st.just("look")))
OFTEN = settings(
    max_examples=200,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


class Play:
    """One sequence, on one bridge after another."""

    def __init__(self, folder: Path) -> None:
        self.house = House(folder)
        self.secrets: set[str] = set()
        self.running: list[asyncio.Task[None]] = []

    async def run(self, steps: Steps) -> None:
        """Play it to its end, and look at what is left."""
        house = self.house
        await house.start()
        await self._do(("add", "ada", True))
        for step, waits in steps:
            match step:
                case ("kill",):
                    await house.kill()
                    await house.start()
                case ("restart",):
                    await self._wait()
                    await house.stop()
                    await house.start()
                case ("go on",):
                    house.free.set()
                    await asyncio.sleep(0.01)
                    house.free.clear()
                case _:
                    self.running.append(doing := asyncio.ensure_future(self._do(step)))
                    # Else what follows happens while it is under way.
                    await asyncio.wait({doing}, timeout=None if waits else 0.002)
        await self._wait()
        await house.settle()
        self.look()
        await house.stop()

    async def _wait(self) -> None:
        running, self.running = self.running, []
        self.house.free.set()
        for failure in await asyncio.gather(*running, return_exceptions=True):
            if isinstance(failure, Exception):
                raise failure
        self.house.free.clear()

    async def _do(self, step: tuple[Any, ...]) -> None:
        house = self.house
        match step:
            case ("say", place, name):
                known = house.base.registry.records
                ids = [record.id for record in known if record.name == name]
                await house.say(place, "say something", *ids[-1:])
            case ("ask", name):
                await house.call("POST", "/api/v1/sessions", agent=name, text="say something")
            case ("look",):
                for path in ("agents", "sessions", "deliveries", "posts", "agents/ada"):
                    await house.call("GET", f"/api/v1/{path}")
                for path in ("/", f"/t/{PLATFORM}/C1:1", "/readyz", "/metrics"):
                    await house.call("GET", path)
            case _:
                await house.change(partial(self._change, step))

    async def _change(self, step: tuple[Any, ...], changes: AgentChanges) -> None:
        match step:
            case ("add", name, connected):
                tokens = {PLATFORM: self._tokens(name)} if connected else {}
                await changes.add(name, {**ENTRY, "env": self._env(name)}, tokens)
            case ("change", name, "env"):
                await changes.change(name, {"env": self._env(name)})
            case ("change", name, "connect"):
                await changes.change(name, {}, {PLATFORM: self._tokens(name)})
            case ("change", name, "disconnect"):
                await changes.change(name, {}, {PLATFORM: None})
            case ("rename", name, to):
                await changes.rename(name, to)
            case ("remove", name):
                await changes.remove(name)
            case ("default", name):
                await changes.choose_default(name)

    def _env(self, name: str) -> dict[str, str]:
        return {"A_KEY": self._new(SECRET, name)}

    def _tokens(self, name: str) -> dict[str, str]:
        return {
            "bot_token": self._new(TOKEN, name),
            "app_token": self._new(TOKEN.replace("xoxb", "xapp"), name),
        }

    def _new(self, form: str, name: str) -> str:
        made = form.format(name=name, number=len(self.secrets))
        self.secrets.add(made)
        return made

    def look(self) -> None:
        """Check that every message came to one end, and that no secret was seen."""
        house = self.house
        for adapter, number in house.acknowledged:
            rows = house.rows(
                "select state, reason from delivery where adapter = ? and delivery_id = ?",
                adapter,
                number,
            )
            assert len(rows) == 1, (adapter, number)
            assert rows[0][0] in {"done", "refused", "failed"}, rows
        for message in {number.rpartition("-")[2] for _, number in house.acknowledged}:
            self._look_at(f"m{message}")
        seen = "\n".join((*house.answers, *house.lines)).encode()
        kept = b"".join(read_store(house.data_dir).values())
        for secret in self.secrets:
            assert secret.encode() not in seen
            assert secret.encode() not in kept

    def _look_at(self, message: str) -> None:
        """Check that a message led to one turn of each agent, or was refused in words."""
        decided = self.house.rows(
            "select outcome, agents, reason from decision where message_id = ?", message
        )
        turns = self.house.rows(
            "select session.agent, count(*) from message join heard on heard.message = message.id "
            "join session on session.id = heard.session where message.message_id = ? "
            "group by session.agent",
            message,
        )
        assert all(number == 1 for _, number in turns), (message, turns)
        if not decided:
            return  # overheard, or failed with its delivery
        assert len(decided) == 1
        told = self.house.rows("select key from post where key like ?", f"%:{message}:%")
        # Who goes on talking to an agent that was removed is told once in each conversation.
        told += self.house.rows("select key from post where key like 'refusal:%:ann'")
        quiet = decided[0][2] in {"none_here", "several_here", "not_mentioned"}
        assert turns or told or quiet, (message, decided)


def play(steps: Steps) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(Play(Path(folder)).run(steps))


@pytest.mark.long
@settings(OFTEN, max_examples=15, derandomize=True)
@given(st.lists(st.tuples(st.one_of(*USUAL), st.booleans()), min_size=4, max_size=12))
def test_every_message_has_one_end_whatever_happens_to_agents(steps: Steps) -> None:
    play(steps)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # two hundred sequences, each with several bridges
@OFTEN
@given(st.lists(st.tuples(st.one_of(*USUAL, *OVER_HTTP), st.booleans()), min_size=4, max_size=20))
def test_every_message_has_one_end_in_many_sequences(steps: Steps) -> None:
    play(steps)
