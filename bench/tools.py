"""A tool call: through the bridge, with its checks, against a bare server of the same package."""

from __future__ import annotations

import http.client
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from bench.bridge import AGENT, DEMO, BridgeServer, said
from bench.figures import Gap, Goal, Row, Scale, milliseconds, ratios
from bench.machine import Server, exchange, free_port
from bench.proof import prove, prove_equal, wait_for
from bench.tally import counted

GOAL = 2.0
"""The bridge also looks up the session, its turn and its lists, and checks the arguments."""
WORDS = "run echo $AGENT_BRIDGE_TOOLS > token\nhold over"
BODY = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "agents_list", "arguments": {}},
}
COUNTED = re.compile(r"^agent_bridge_tool_calls_total\{[^}]*\} (\S+)$", re.MULTILINE)


@dataclass
class Callee:
    """A server of tools, and how long a call took in each round."""

    port: int
    token: str
    taken: Callable[[], int]
    """How many calls it has dealt with by now."""
    seconds: list[float] = field(default_factory=list)

    def call(self, times: int) -> float:
        """Call a tool so many times over one connection; returns the usual time of one call."""
        before, took = self.taken(), []
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        for _ in range(times):
            began = time.perf_counter()
            connection.request("POST", "/mcp", json.dumps(BODY), headers)
            answer = connection.getresponse().read().decode()
            took.append(time.perf_counter() - began)
            prove('{\\"agents\\": []}' in answer, f"a call did not work: {answer[:500]}")
        connection.close()
        wait_for(self.taken, before + times, "calls dealt with")
        return median(took)


def measure(scale: Scale, folder: Path) -> Iterator[Row | Gap]:
    """Measure calls one after another, over one connection each."""
    tally = folder / "tally"
    bare = Server("bench.receivers.mcp_tool", port := str(free_port()), str(tally), port=int(port))
    free = {"command": [sys.executable, str(DEMO)], "sandbox": "none", "mode": "free"}
    bridge = BridgeServer(folder, settings={"AGENTS_JSON": json.dumps({AGENT: free})})
    with bare, bridge.server:
        bridge.wait_ready()
        ours = Callee(bridge.port, _begin_turn(bridge), partial(_count_calls, bridge.port))
        theirs = Callee(bare.port, "", partial(counted, tally))
        _prove_checking(ours)
        for _ in range(scale.rounds):
            for callee in (ours, theirs):
                callee.call(scale.warm_up)
                callee.seconds.append(callee.call(scale.single))
    mine, other = median(ours.seconds), median(theirs.seconds)
    yield Row(
        "a tool call through the bridge",
        "a bare `mcp` server",
        ratios(ours.seconds, theirs.seconds),
        " x",
        Goal("at most", GOAL),
        f"{milliseconds(mine)} against {milliseconds(other)}",
    )


def _begin_turn(bridge: BridgeServer) -> str:
    """Begin a turn that goes on, and return the token of its agent."""
    prove_equal(
        exchange(bridge.port, said("tools", WORDS, bridge.port)), 200, "status of a message"
    )
    file = bridge.data_dir / "workspaces" / f"1-{AGENT}" / "token"
    wait_for(lambda: int(file.exists() and file.stat().st_size > 1), 1, "tokens")
    return file.read_text().strip()


def _prove_checking(callee: Callee) -> None:
    """Make sure that it refuses a token that is not its own."""
    connection = http.client.HTTPConnection("127.0.0.1", callee.port)
    connection.request("POST", "/mcp", json.dumps(BODY), {"Authorization": "Bearer guess"})
    prove_equal(connection.getresponse().status, 401, "status of a guessed token")
    connection.close()


def _count_calls(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/metrics")
    found = COUNTED.findall(connection.getresponse().read().decode())
    connection.close()
    return round(sum(map(float, found)))
