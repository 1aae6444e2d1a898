"""An agent's own login: the ways it offers, and the one that goes over ACP."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from app.acp import visits
from app.acp.elicitation import DONE
from app.acp.visits import Method, greet, log_in, methods, methods_of
from app.errors import AgentRefused
from tests.unit.acp.helpers import BOUND, Memory, scripted
from tests.unit.acp.trial.test_probe import Bench
from tests.unit.children.helpers import carriers

pytestmark = pytest.mark.anyio

# Logged in by a code that a person enters somewhere else; remembers it in its HOME.
DEVICE = """
key = os.path.join(os.environ["HOME"], "key")
def initialize(message):
    able = message["params"]["clientCapabilities"]
    offered = [{"id": "device", "name": "Device code", "description": "With a code"}]
    if able.get("auth", {}).get("terminal"):
        offered.append({"id": "tui", "name": "Terminal", "type": "terminal",
                        "args": ["--login"], "env": {"A": "1", "B": 2}})
    answer(message, protocolVersion=1, authMethods=offered)
def authenticate(message):
    global asked
    asked = message
    if message["params"]["methodId"] != "device":
        return send(id=message["id"], error={"code": -32602, "message": "no such method"})
    print("Open https://example.com/device", file=sys.stderr, flush=True)
    send(id="e", method="elicitation/create", params={
        "requestId": message["id"], "mode": "url", "elicitationId": "x",
        "message": "Enter the code AB-CD", "url": "https://example.com/device"})
def reply(message):
    open(key, "w").write(message["result"]["action"])
    answer(asked)
def new(message):
    if os.path.exists(key):
        return answer(message, sessionId="s1")
    send(id=message["id"], error={"code": -32000, "message": "Authentication required"})
"""


def test_every_form_of_a_login_is_understood() -> None:
    whole = {"terminal-auth": {"command": "opencode", "args": ["auth", "login"]}}
    answer = {
        "authMethods": [
            {"id": "key", "name": "API key", "description": "Use a key"},
            {"id": "tui", "type": "terminal", "args": ["--cli", 7, "login"], "env": {"A": "1"}},
            {"id": "older", "name": "Log in", "_meta": whole},
            {"name": "without an id"},
            "nonsense",
        ]
    }

    assert methods_of(answer, ("agent", "--acp")) == [
        Method("key", "API key", "Use a key"),
        Method("tui", "tui", command=("agent", "--acp", "--cli", "login"), environment={"A": "1"}),
        Method("older", "Log in", command=("opencode", "auth", "login")),
    ]


@pytest.mark.parametrize("answer", [None, [], {"authMethods": None}, {"authMethods": {"id": "x"}}])
def test_an_answer_without_logins_offers_none(answer: object) -> None:
    assert methods_of(answer, ("agent",)) == []


async def test_an_agent_logs_in_and_a_person_sees_address_and_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visits, "LOOK_SECONDS", 0.01)
    bench = Bench(tmp_path, scripted(DEVICE))
    person, overheard = Memory(answer=DONE.id), list[str]()
    device, terminal = await methods(bench.visits, person)
    assert (await greet(bench.visits)).logged_in is False

    async with asyncio.timeout(4 * BOUND):
        await log_in(bench.visits, person, device, overheard.append)

    assert (await greet(bench.visits)).logged_in
    assert person.asked[0].title == "Enter the code AB-CD\nhttps://example.com/device"
    assert terminal.command == (*bench.visits.launch.argv, "--login")
    assert terminal.environment == {"A": "1"}
    assert (tmp_path / "home" / "key").read_text() == "accept"
    assert [carriers(marker) for marker in bench.markers] == [[]] * len(bench.markers)


async def test_what_an_agent_writes_to_stderr_meanwhile_is_told_line_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visits, "LOOK_SECONDS", 0.01)
    gate = tmp_path / "gate"
    body = f"""
def authenticate(message):
    print("Open https://example.com", file=sys.stderr, flush=True)
    while not os.path.exists({str(gate)!r}):
        time.sleep(0.01)
    answer(message)
"""
    overheard = list[str]()

    def told(words: str) -> None:
        overheard.append(words)
        gate.touch()

    async with asyncio.timeout(4 * BOUND):
        await log_in(Bench(tmp_path, scripted(body)).visits, Memory(), Method("a", "A"), told)

    assert overheard == ["Open https://example.com"]


async def test_a_login_that_is_refused_says_why(tmp_path: Path) -> None:
    bench = Bench(tmp_path, scripted(DEVICE))

    with pytest.raises(AgentRefused, match="no such method"):
        await log_in(bench.visits, Memory(), Method("other", "Other"), lambda _: None)
