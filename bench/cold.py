"""Cold event to prompt: from the first byte of a webhook to the agent having read its prompt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from app.children.sandbox import Bubblewrap, find_bubblewrap
from bench.agents.stopwatch import STAMP
from bench.bridge import DEMO, STOPWATCH, BridgeServer, said
from bench.figures import Goal, Row, Scale, milliseconds
from bench.machine import LOOK_SECONDS, exchange

PROMPT_SECONDS = 60.0
"""How long a cold start may take on a busy machine."""
WARM_UP = 2
"""Events before the clock starts: the first one finds caches and imports cold."""
SETTLE_SECONDS = 0.15
"""After each event, so that the end of one turn does not disturb the beginning of the next."""
ANYWHERE = -1


def measure(scale: Scale, folder: Path) -> Iterator[Row]:
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
            raw = _raw(folder / "raw")
            through = {name: _through(bridge, number) for name, bridge in bridges.items()}
            if number >= 0:
                taken["raw"].append(raw)
                for name, seconds in through.items():
                    taken[name].append(seconds)
    finally:
        for bridge in bridges.values():
            bridge.server.stop()
    yield _row("cold event to prompt read", taken["none"], taken["raw"], Goal("at most", 1.1))
    if "bubblewrap" in taken:
        yield _row("the same in bubblewrap", taken["bubblewrap"], taken["raw"], None)


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


def _through(bridge: BridgeServer, number: int) -> float:
    """Say something in a new place and wait until the agent has read it."""
    stamp = bridge.agent_home / STAMP
    stamp.unlink(missing_ok=True)
    request = said(f"cold{number}", "say hello", bridge.port)
    began = time.monotonic_ns()
    assert exchange(bridge.port, request) == 200
    took = _read(stamp, began)
    time.sleep(SETTLE_SECONDS)
    return took


def _raw(home: Path) -> float:
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
        took = _read(stamp, began)
        agent.stdin.close()
        agent.stdout.read()
    return took


def _line(method: str, parameters: dict[str, object]) -> bytes:
    message = {"jsonrpc": "2.0", "id": method, "method": method, "params": parameters}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _read(stamp: Path, began: int) -> float:
    """Wait for the stamp of an agent and return the seconds until then."""
    deadline = time.monotonic() + PROMPT_SECONDS
    while not stamp.exists():
        if time.monotonic() > deadline:
            raise TimeoutError("the agent did not get its prompt")
        time.sleep(LOOK_SECONDS)
    return (int(stamp.read_text()) - began) / 1e9


_CONVERSATION: tuple[tuple[str, dict[str, object]], ...] = (
    ("initialize", {"protocolVersion": 1, "clientCapabilities": {}}),
    ("session/new", {"cwd": "/", "mcpServers": []}),
    ("session/prompt", {"prompt": [{"type": "text", "text": "say hello"}]}),
)
