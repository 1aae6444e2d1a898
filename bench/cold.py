"""Cold event to prompt: from the first byte of a webhook to the agent having read its prompt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import IO

from app.children.sandbox import Bubblewrap, find_bubblewrap
from bench.agents.stopwatch import NETWORK, STAMP
from bench.bridge import DEMO, STOPWATCH, BridgeServer, said
from bench.figures import Gap, Goal, Row, Scale, milliseconds
from bench.history import stored
from bench.machine import LOOK_SECONDS, exchange
from bench.proof import Unproven, prove, prove_equal, wait_for

PROMPT_SECONDS = 60.0
"""How long a cold start may take on a busy machine."""
WARM_UP = 2
"""Events before the clock starts: the first one finds caches and imports cold."""
SETTLE_SECONDS = 0.15
"""After each event, so that the end of one turn does not disturb the beginning of the next."""
ISOLATION = "what isolation adds to a cold event"
ANYWHERE = -1
ANSWERED = """
select count(*) from turn
join session on session.id = turn.session
join place on place.id = session.place
join transcript on transcript.turn = turn.id
where place.name = ? and turn.state = 'done'
and transcript.kind = 'text' and transcript.text = 'hello'
"""
"""Turns of a place that are done, with the whole answer of the agent."""


def measure(scale: Scale, folder: Path) -> Iterator[Row | Gap]:
    """Measure the bridge against the same agent started by hand."""
    bridges = {"none": BridgeServer(folder / "none", core=ANYWHERE)}
    if isinstance(find_bubblewrap(os.environ["PATH"]), Bubblewrap):
        bridges["bubblewrap"] = BridgeServer(
            folder / "bubblewrap", core=ANYWHERE, sandbox="bubblewrap"
        )
    taken: dict[str, list[float]] = {name: [] for name in ("raw", *bridges)}
    for bridge in bridges.values():
        bridge.server.start()
        bridge.wait_ready()
    try:
        for number in range(-WARM_UP, scale.cold):
            raw = by_hand(folder / "raw")
            through = {name: through_bridge(bridge, number) for name, bridge in bridges.items()}
            if number >= 0:
                taken["raw"].append(raw)
                for name, seconds in through.items():
                    taken[name].append(seconds)
    finally:
        for bridge in bridges.values():
            bridge.server.stop()
    yield _row("cold event to prompt read", taken["none"], taken["raw"], Goal("at most", 1.1))
    if "bubblewrap" in taken:
        yield _isolation_row(taken["bubblewrap"], taken["none"])
    else:
        yield Gap(ISOLATION, "bubblewrap does not work here", failed=False)


def _row(what: str, ours: list[float], raw: list[float], goal: Goal | None) -> Row:
    return Row(
        what,
        "spawn + initialize + new + prompt by hand",
        min(ours) / min(raw),
        " x",
        goal,
        f"{milliseconds(min(ours))} against {milliseconds(min(raw))}, "
        f"medians {milliseconds(median(ours))} against {milliseconds(median(raw))}",
    )


def _isolation_row(isolated: list[float], shared: list[float]) -> Row:
    return Row(
        ISOLATION,
        "the same bridge without isolation",
        (min(isolated) - min(shared)) * 1000,
        " ms",
        Goal("at most", 40.0),
        f"{milliseconds(min(isolated))} against {milliseconds(min(shared))}, "
        f"medians {milliseconds(median(isolated))} against {milliseconds(median(shared))}",
    )


def through_bridge(
    bridge: BridgeServer, number: int, answered: Callable[[str], int] | None = None
) -> float:
    """Say something in a new place and wait until the agent has read it.

    `answered` counts the turns of a place that are done, where that is not in a file.
    """
    count = answered or partial(stored, bridge.data_dir, ANSWERED)
    for old in bridge.stamps(STAMP):
        old.unlink()
    place = f"cold{number}"
    request = said(place, "say hello", bridge.port)
    began = time.monotonic_ns()
    answer = exchange(bridge.port, request)
    apart = bridge.sandbox != "none"
    took = wait_for_stamp(lambda: next(bridge.stamps(STAMP), None), began, apart=apart)
    prove_equal(answer, 200, "answer to the event")
    wait_for(lambda: count(place), 1, f"turns of {place} that are done")
    time.sleep(SETTLE_SECONDS)
    return took


def by_hand(home: Path) -> float:
    """Do by hand what must be done, and nothing else."""
    home.mkdir(exist_ok=True)
    stamp = home / STAMP
    stamp.unlink(missing_ok=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    began = time.monotonic_ns()
    with subprocess.Popen(
        [sys.executable, str(STOPWATCH), str(DEMO)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        cwd=home,
        start_new_session=True,
    ) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        answers: dict[str, object] = {}
        for method, parameters in _CONVERSATION:
            agent.stdin.write(_line(method, parameters | answers))
            agent.stdin.flush()
            if method == "session/new":
                while "sessionId" not in answers:
                    answer = json.loads(agent.stdout.readline())
                    answers = {"sessionId": answer.get("result", {}).get("sessionId")}
            elif method == "initialize":
                agent.stdout.readline()
        took = wait_for_stamp(lambda: stamp if stamp.exists() else None, began, apart=False)
        words = _answer(agent.stdout)
        agent.stdin.close()
        agent.stdout.read()
    prove_equal(words, "hello", "answer of the agent")
    return took


def _answer(output: IO[bytes]) -> str:
    """Read all that an agent says until its turn ends."""
    words = ""
    for line in output:
        frame = json.loads(line)
        if frame.get("id") == "session/prompt":
            end = frame.get("result", {}).get("stopReason")
            prove_equal(end, "end_turn", "end of the turn")
            return words
        update = frame.get("params", {}).get("update", {})
        if update.get("sessionUpdate") == "agent_message_chunk":
            words += update["content"]["text"]
    raise Unproven("the agent ended without an answer")


def _line(method: str, parameters: dict[str, object]) -> bytes:
    message = {"jsonrpc": "2.0", "id": method, "method": method, "params": parameters}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def wait_for_stamp(find: Callable[[], Path | None], began: int, *, apart: bool) -> float:
    """Wait for the stamp of an agent and return the seconds until then.

    The agent must have been in a network of its own, or must not: else something else was measured.
    """
    deadline = time.monotonic() + PROMPT_SECONDS
    while (stamp := find()) is None:
        if time.monotonic() > deadline:
            raise Unproven("the agent did not get its prompt")
        time.sleep(LOOK_SECONDS)
    moment, network = stamp.read_text().split()
    own = os.readlink(NETWORK)  # noqa: PTH115 - it is no path
    prove((network != own) is apart, "the agent was not in the network that it should be in")
    return (int(moment) - began) / 1e9


_CONVERSATION: tuple[tuple[str, dict[str, object]], ...] = (
    ("initialize", {"protocolVersion": 1, "clientCapabilities": {}}),
    ("session/new", {"cwd": "/", "mcpServers": []}),
    ("session/prompt", {"prompt": [{"type": "text", "text": "say hello"}]}),
)
