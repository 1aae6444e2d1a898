"""What a test sees of a bridge from outside: its answers, its memory, the processes it owns.

Its `main` is also the start-up of that bridge: with hook adapters, or with the product's own for
tests of the API. No port is wrapped.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from app.services import registered_services
from tests.support.bridge import DEMO, BridgeProcess
from tests.support.hook import PACE_SECONDS, HookAdapter, message
from tests.support.platform import FINAL, RemotePost

PATIENCE = 90.0
"""Seconds: how long a turn may take on a machine that many share."""
OVER = {"done", "failed", "cancelled"}
QUICK = {"initialize": 8.0, "new": 8.0, "load": 6.0, "configure": 8.0, "cancel": 3.0}
"""Seconds an agent may take in tests of agents that hang."""


def demo(faults: str = "1", **more: Any) -> dict[str, Any]:
    """Make the entry of a demo agent that knows the fault commands."""
    own = {"AGENT_BRIDGE_DEMO_FAULTS": faults, **more.pop("env", {})}
    return {"command": DEMO, "sandbox": "none", "env": own, "while_busy": "queue", **more}


@dataclass
class Observed(BridgeProcess):
    """A bridge whose conversations, processes and memory a test can look at."""

    startup: ClassVar[str] = "tests.support.observe"
    timeouts: dict[str, float] = field(default_factory=dict)
    dotenv: Path | None = None
    hooks: bool = True
    """Whether the adapters are those of the tests; else the product's own."""
    pace: float = PACE_SECONDS
    """Seconds between two edits of one post."""
    names: dict[str, list[str]] = field(default_factory=dict)
    """The addresses of names, for agents with a network of their own."""
    routes: dict[str, int] = field(default_factory=dict)
    """The loopback ports that public addresses lead to."""
    starts_agents: bool = False
    """Whether it starts each agent once by itself to see if it works, as `serve` does."""

    def turns(self, place: str, agent: str = "demo") -> list[RemotePost]:
        """List the posts that show the turns of an agent in a place, in order."""
        return [p for p in self.platform.turns() if p.target == f"web:{place}:{agent}"]

    def notices(self, place: str) -> list[str]:
        """List what the bridge itself said in a place."""
        return [
            post.content["note"]
            for post in self.platform.posts
            if post.content["kind"] == "notice" and post.target.startswith(f"web:{place}:")
        ]

    def begin(self, place: str, text: str, agent: str = "demo", **more: Any) -> int:
        """Say something to an agent and return which of its turns in the place that becomes."""
        number = len(self.turns(place, agent))
        event = message(place, text, agent, **more)
        assert self.deliver(event, agent=agent) == 200
        return number

    def end(self, place: str, number: int, agent: str = "demo") -> dict[str, Any]:
        """Wait for the last words of a turn."""

        def ended(_posts: object) -> bool:
            turns = self.turns(place, agent)
            return len(turns) > number and turns[number].content["state"] in FINAL

        self._watch(ended)
        return self.turns(place, agent)[number].content

    def ask(self, place: str, text: str, agent: str = "demo", **more: Any) -> dict[str, Any]:
        """Say something to an agent and return what its turn showed at the end."""
        return self.end(place, self.begin(place, text, agent, **more), agent)

    def notice(self, place: str, count: int) -> str:
        """Wait until the bridge itself has said so many things in a place; returns the last."""
        self._watch(lambda _posts: len(self.notices(place)) >= count)
        return self.notices(place)[-1]

    def told(self, place: str, text: str, *mentions: str, **more: Any) -> str:
        """Say something that the bridge itself answers, and return the answer."""
        count = len(self.notices(place))
        assert self.say(place, text, *mentions, **more) == 200
        return self.notice(place, count + 1)

    def settled(self, message_id: str) -> tuple[str, str, list[str]]:
        """Wait for what became of a message: outcome, reason, and who was addressed."""
        query = "select outcome, reason, agents from decision where message_id = ?"
        self.wait(lambda: bool(self.rows(query, message_id)), f"no decision on {message_id}")
        outcome, reason, agents = self.rows(query, message_id)[0]
        return outcome, reason, json.loads(agents)

    def open_asks(self, count: int = 1, place: str | None = None) -> list[int]:
        """Wait until so many asks are open, in one place or in all, and return their ids."""
        query = (
            "select ask.id from ask join session on session.id = ask.session "
            "join place on place.id = session.place "
            "where ask.state = 'open' and place.name like ? order by ask.id"
        )
        self.wait(lambda: len(self.rows(query, place or "%")) >= count, f"{count} asks", PATIENCE)
        return [row[0] for row in self.rows(query, place or "%")]

    def answer(self, ask: int, option: str = "allow", agent: str = "demo") -> None:
        """Answer an ask as a person does, by its button."""
        event = {"ask": ask, "option": option, "speaker": {"id": "ann", "name": "Ann"}}
        assert self.deliver(event, agent=agent) == 200

    def session(self, place: str, agent: str = "demo") -> int:
        """Tell the number of an agent's session in a place."""
        query = (
            "select session.id from session join place on place.id = session.place "
            "where place.name = ? and session.agent = ?"
        )
        return int(self.rows(query, place, agent)[0][0])

    def release(self, place: str, name: str, agent: str = "demo") -> None:
        """Let a turn go on that holds for a file."""
        (self.workspace(agent, self.session(place, agent)) / name).touch()

    def held(self, place: str, name: str, agent: str = "demo") -> None:
        """Wait until a turn that was told `tell NAME` has come that far."""
        self.wait(lambda: bool(self._session_of(place, agent)), f"no session in {place}", PATIENCE)
        there = self.workspace(agent, self.session(place, agent)) / name
        self.wait(there.exists, f"{name} was not told", PATIENCE)

    def agent_pids(self, agent: str = "demo") -> set[int]:
        """Find every process that lives in an agent's HOME, but for the reapers of the bridge."""
        homes = re.escape(str(self.data_dir))
        lives_there = re.compile(f"HOME={homes}/(homes/|session-homes/\\d+-){agent}".encode())
        found = set()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    is_reaper = b"\0reap=" in (entry / "cmdline").read_bytes()
                    variables = (entry / "environ").read_bytes().split(b"\0")
                    if not is_reaper and any(map(lives_there.fullmatch, variables)):
                        found.add(int(entry.name))
        return found

    def gone(self, agent: str, but: set[int] | None = None) -> None:
        """Wait until no process of an agent is left, but for those named."""
        self.wait(
            lambda: not self.agent_pids(agent) - (but or set()), f"{agent} still lives", PATIENCE
        )

    def open_session(self, agent: str, text: str, **more: str) -> dict[str, Any]:
        """Begin a session over the API."""
        told = {"agent": agent, "text": text, **more}
        answer = self.http.post("/api/v1/sessions", json=told)
        assert answer.status_code == 201, answer.text
        session: dict[str, Any] = answer.json()
        return session

    def ended(self, session: int, turns: int = 1) -> dict[str, Any]:
        """Wait until so many turns of a session are over, and read it over the API."""

        def read() -> dict[str, Any]:
            found: dict[str, Any] = self.http.get(f"/api/v1/sessions/{session}").json()
            return found

        def over() -> bool:
            states = [turn["state"] for turn in read()["turns"]]
            return len(states) >= turns and set(states) <= OVER

        self.wait(over, f"session {session} does not end", PATIENCE)
        return read()

    def memory(self, what: str = "VmRSS") -> int:
        """Tell how many bytes the bridge holds now (`VmRSS`) or held at most (`VmHWM`)."""
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith(f"{what}:"))
        return int(line.split()[1]) * 1024

    def _session_of(self, place: str, agent: str) -> list[tuple[Any, ...]]:
        query = (
            "select session.id from session join place on place.id = session.place "
            "where place.name = ? and session.agent = ?"
        )
        return self.rows(query, place, agent)

    def _watch(self, done: Any) -> None:
        try:
            self.platform.wait(done, PATIENCE)
        except TimeoutError as error:
            raise TimeoutError(f"{str(error)[-4000:]}\n{self.log.read_text()[-4000:]}") from None

    def _plan(self) -> dict[str, Any]:
        dotenv = None if self.dotenv is None else str(self.dotenv)
        own = {"timeouts": self.timeouts, "dotenv": dotenv, "hooks": self.hooks, "pace": self.pace}
        return (
            super()._plan()
            | own
            | {
                "names": self.names,
                "routes": self.routes,
                "starts_agents": self.starts_agents,
            }
        )


def mismatches(
    value: object, schema: dict[str, Any], document: dict[str, Any], where: str = "$"
) -> list[str]:
    """List where a value is not what an OpenAPI document promises: the part of it that we use."""
    if "$ref" in schema:
        named = schema["$ref"].rpartition("/")[2]
        return mismatches(value, document["components"]["schemas"][named], document, where)
    if "anyOf" in schema:
        tried = [mismatches(value, choice, document, where) for choice in schema["anyOf"]]
        return [] if [] in tried else [f"{where}: none of its choices", *tried[0]]
    kind = TYPES.get(schema.get("type", ""), (object,))
    wrong = [] if isinstance(value, kind) else [f"{where}: {value!r} is no {schema['type']}"]
    if "enum" in schema and value not in schema["enum"]:
        wrong.append(f"{where}: {value!r} is none of {schema['enum']}")
    if isinstance(value, list):
        for number, item in enumerate(value):
            wrong += mismatches(item, schema["items"], document, f"{where}[{number}]")
    if isinstance(value, dict) and "properties" in schema:
        known = schema["properties"]
        wrong += [f"{where}: {name} is missing" for name in schema["required"] if name not in value]
        wrong += [f"{where}: {name} is not described" for name in value if name not in known]
        for name in known.keys() & value.keys():
            wrong += mismatches(value[name], known[name], document, f"{where}.{name}")
    return wrong


TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def main(plan_file: str) -> None:
    """Run a bridge by a plan."""
    # Here, so that collecting tests does not wait for the whole product.
    from app.agents.catalog import known_agents
    from app.config import load
    from app.main import Bridge, bind_ports, open_resources, presence, serve
    from tests.support.memory import prepare_store, sync_never
    from tests.support.outside import Staged

    plan = json.loads(Path(plan_file).read_text())
    configuration = load(
        plan["environment"],
        known=known_agents(),
        dotenv=None if plan["dotenv"] is None else Path(plan["dotenv"]),
        services=registered_services(),
        home=Path(plan["home"]),
    )

    def listening() -> None:
        sys.stdout.write("listening\n")
        sys.stdout.flush()

    async def run() -> None:
        hooks = [HookAdapter(name, plan["platform"], plan["token"]) for name in base.registry]
        for hook in hooks:
            hook.pace = plan["pace"]
        bridge = Bridge(
            base,
            hooks if plan["hooks"] else presence(base).adapters,
            timeouts=plan["timeouts"],
            starts_agents=plan["starts_agents"],
        )
        ports = bind_ports(configuration)
        await serve(bridge, ports, listening=listening)

    if plan["prepared"]:
        prepare_store(configuration.data_dir)
    with open_resources(configuration, outside=Staged(plan["names"], plan["routes"])) as base:
        if plan["prepared"]:
            sync_never(base.database)
        asyncio.run(run())


if __name__ == "__main__":
    main(sys.argv[1])
