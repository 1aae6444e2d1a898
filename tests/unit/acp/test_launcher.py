"""Bringing agents to life: old conversations and new ones, choices, and failures on the way."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from acp.schema import HttpMcpServer, McpServerStdio, SseMcpServer

from app.acp.background import SDK_MESSAGES
from app.acp.card import Card, ProbeStep, write_card
from app.acp.peer import AgentTimeouts
from app.children.environment import visible_prefixes
from app.children.layout import Confinement
from app.children.sandbox import Bubblewrap, find_bubblewrap
from app.demo_agent import VERSION
from app.errors import (
    AgentDied,
    AgentLoginNeeded,
    AgentNotStarted,
    AgentRefused,
    AgentTimedOut,
    NotFound,
    StoreUnavailable,
)
from app.model.types import ProcessRecord
from app.model.updates import StateUpdate
from app.model.workspaces import Workspace
from tests.unit.acp.helpers import BOUND, DEMO, Bench, Memory, scripted, session
from tests.unit.acp.test_session import begun, told
from tests.unit.children.helpers import carriers

pytestmark = pytest.mark.anyio

# Tells in its first words everything that it was told.
PARROT = """
seen = []
def note(message):
    seen.append([message["method"], message["params"]])
def initialize(message, plain=initialize):
    note(message)
    plain(message)
def new(message):
    note(message)
    answer(message, sessionId="s1", modes={"currentModeId": "yolo", "availableModes": [
        {"id": "yolo", "name": "Yolo"}, {"id": "ask", "name": "Ask"}]},
        configOptions=[
            {"id": "brain", "name": "Model", "category": "model", "type": "select",
             "currentValue": "small", "options": [
                {"group": "g", "name": "G", "options": [{"value": "small", "name": "S"}]},
                {"group": "h", "name": "H", "options": [{"value": "big", "name": "B"}]}]},
            {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": False}])
def set_mode(message):
    note(message)
    answer(message)
def set_config_option(message):
    note(message)
    answer(message)
def prompt(message):
    say(json.dumps(seen))
    answer(message, stopReason="end_turn")
"""


async def test_a_first_turn_begins_a_new_conversation(bench: Bench) -> None:
    workbench = bench()

    opened = await begun(workbench)

    assert opened.how == "new"
    assert opened.session.acp_session_id.startswith("demo-")
    record = workbench.processes.records[0]
    assert record == ProcessRecord("demo", 7, record.group, record.started, record.marker)
    assert record.marker.startswith("test.")
    await opened.session.close()


@pytest.mark.parametrize(
    ("faults", "how"), [("1", "resumed"), ("1,no-resume", "loaded"), ("1,fail-resume", "loaded")]
)
async def test_an_old_conversation_is_brought_back_and_not_told_again(
    bench: Bench, faults: str, how: str
) -> None:
    first = await begun(bench())
    await told(first.session, "say the password is swordfish")
    await first.session.close()
    workbench = bench(faults=faults)

    again = await begun(workbench, first.session.acp_session_id)
    heard = await told(again.session, "recall")

    assert again.how == how
    assert again.session.acp_session_id == first.session.acp_session_id
    assert "swordfish" in heard.text
    assert all(isinstance(update, StateUpdate) for update in workbench.between.heard)
    await again.session.close()


async def test_a_load_ends_after_all_that_it_replays(bench: Bench) -> None:
    workbench = bench(
        scripted("""
def load(message):
    for number in range(500):
        say(str(number))
        update("session_info_update", title=str(number))
    answer(message)
def prompt(message):
    say("fresh")
    answer(message, stopReason="end_turn")
""")
    )

    opened = await begun(workbench, "s1")

    titles = [update.value for update in workbench.between.heard if isinstance(update, StateUpdate)]
    assert titles == [str(number) for number in range(500)]
    assert workbench.counts.dropped == {"between_turns": 500}
    assert (await told(opened.session, "go")).text == "fresh"
    await opened.session.close()


@pytest.mark.parametrize("faults", ["1,no-load", "1,fail-load,fail-resume"])
async def test_a_conversation_that_cannot_come_back_is_lost_and_a_new_one_begins(
    bench: Bench, faults: str
) -> None:
    workbench = bench(faults=faults)

    opened = await begun(workbench, "demo-0123")

    assert opened.how == "lost"
    assert opened.session.acp_session_id != "demo-0123"
    assert "hello" in (await told(opened.session, "say hello")).text
    await opened.session.close()


@pytest.mark.parametrize("faults", ["1,hang-resume", "1,no-resume,hang-load"])
async def test_an_agent_that_hangs_over_an_old_conversation_is_started_afresh(
    bench: Bench, faults: str
) -> None:
    workbench = bench(faults=faults, timeouts=replace(AgentTimeouts(), load=0.2))

    opened = await begun(workbench, "demo-0123")

    assert opened.how == "lost"
    first, second = workbench.processes.records
    assert carriers(first.marker) == []
    assert first.marker != second.marker
    assert "hello" in (await told(opened.session, "say hello")).text
    await opened.session.close()


async def test_an_agent_that_dies_over_an_old_conversation_is_started_afresh(bench: Bench) -> None:
    workbench = bench(scripted("def load(message): os._exit(1)\n"))

    opened = await begun(workbench, "s0")

    assert (opened.how, opened.session.acp_session_id) == ("lost", "s1")
    await opened.session.close()


async def test_the_agent_is_told_who_asks_and_what_is_not_on_offer(bench: Bench) -> None:
    workbench = bench(scripted(PARROT), meta={"claudeCode": {"options": {"a": 1}}})
    opened = await begun(workbench)

    seen = orjson.loads((await told(opened.session, "go")).text)

    (_, introduction), (_, beginning) = seen
    assert introduction["protocolVersion"] == 1
    assert introduction["clientInfo"]["name"] == "agent-bridge"
    assert introduction["clientCapabilities"] == {
        "fs": {"readTextFile": False, "writeTextFile": False},
        "terminal": False,
        "elicitation": {"form": {}, "url": {}},
        "session": {"notices": {}, "compaction": {}},
        "subagents": {},
    }
    assert beginning == {
        "cwd": str(workbench.workspace),
        "mcpServers": [],
        "_meta": {"claudeCode": {"options": {"a": 1}, "emitRawSDKMessages": SDK_MESSAGES}},
    }
    await opened.session.close()


async def test_mode_model_and_options_are_set_at_the_beginning_the_mode_last(bench: Bench) -> None:
    workbench = bench(scripted(PARROT), mode="ask", model="big", options={"fast": True})
    opened = await begun(workbench)

    seen = orjson.loads((await told(opened.session, "go")).text)

    assert seen[2:] == [
        ["session/set_config_option", {"sessionId": "s1", "configId": "brain", "value": "big"}],
        [
            "session/set_config_option",
            {"sessionId": "s1", "configId": "fast", "value": True, "type": "boolean"},
        ],
        ["session/set_mode", {"sessionId": "s1", "modeId": "ask"}],
    ]
    await opened.session.close()


async def test_what_a_person_chose_for_the_session_wins(bench: Bench) -> None:
    workbench = bench(scripted(PARROT), mode="ask", model="big")
    opened = await workbench.launcher.open(
        session(mode="yolo", model="small"), Workspace(workbench.workspace), workbench.between
    )

    seen = orjson.loads((await told(opened.session, "go")).text)

    assert [params.get("modeId") or params.get("value") for _, params in seen[2:]] == [
        "small",
        "yolo",
    ]
    await opened.session.close()


@pytest.mark.parametrize("faults", ["1", "1,no-resume"])
async def test_the_mode_is_set_after_resume_and_load_too(bench: Bench, faults: str) -> None:
    first = await begun(bench())
    await told(first.session, "say hello")
    await first.session.close()
    workbench = bench(faults=faults, mode="free")

    opened = await begun(workbench, first.session.acp_session_id)

    assert StateUpdate("mode", "free") in workbench.between.heard
    await told(opened.session, "write unasked.txt words", Memory())
    assert (workbench.workspace / "unasked.txt").exists()
    await opened.session.close()


async def test_an_old_conversation_whose_modes_are_not_repeated_is_told_its_mode(
    bench: Bench,
) -> None:
    workbench = bench(scripted(PARROT + "def load(message): answer(message)\n"), mode="ask")
    opened = await begun(workbench, "s1")

    seen = orjson.loads((await told(opened.session, "go")).text)

    assert seen[1:] == [["session/set_mode", {"sessionId": "s1", "modeId": "ask"}]]
    await opened.session.close()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mode": "polite"}, "no mode 'polite'; offered: yolo, ask"),
        ({"model": "huge"}, "no brain 'huge'; offered: small, big"),
        ({"options": {"slow": True}}, "no option 'slow'; offered: brain, fast"),
        ({"options": {"fast": "very"}}, "either true or false"),
    ],
)
async def test_a_choice_that_is_not_offered_ends_the_start(
    bench: Bench, changes: dict[str, object], words: str
) -> None:
    workbench = bench(scripted(PARROT), **changes)

    with pytest.raises(AgentRefused, match=words):
        await begun(workbench)

    assert carriers(workbench.marker) == []


async def test_an_agent_that_refuses_its_mode_does_not_run(bench: Bench) -> None:
    workbench = bench(faults="1,fail-set_mode", mode="ask")

    with pytest.raises(AgentRefused, match="set_mode failed"):
        await begun(workbench)

    assert carriers(workbench.marker) == []


async def test_an_agent_without_modes_cannot_be_given_one(bench: Bench) -> None:
    workbench = bench(scripted(), mode="ask")

    with pytest.raises(AgentRefused, match="no mode 'ask'; offered: none"):
        await begun(workbench)


async def test_a_mode_that_is_only_an_option_is_set_as_one(bench: Bench) -> None:
    body = """
def new(message):
    answer(message, sessionId="s1", configOptions=[
        {"id": "mode", "name": "Mode", "category": "mode", "type": "select",
         "currentValue": "build", "options": [{"value": "plan", "name": "Plan"}]}])
def set_config_option(message):
    note(message)
    answer(message, configOptions=[])
"""
    opened = await begun(bench(scripted(PARROT + body), mode="plan"))

    seen = orjson.loads((await told(opened.session, "go")).text)

    assert seen[-1][1] == {"sessionId": "s1", "configId": "mode", "value": "plan"}
    await opened.session.close()


async def test_mode_and_model_can_be_changed_between_turns(bench: Bench) -> None:
    opened = await begun(bench())

    await opened.session.configure(mode="free", model="macaw")
    with pytest.raises(AgentRefused, match="offered: ask, free"):
        await opened.session.configure(mode="reckless", model=None)

    assert opened.session.alive
    await opened.session.close()


async def test_an_agent_that_wants_a_log_in_gets_it(bench: Bench) -> None:
    body = """
def authenticate(message):
    note(message)
    answer(message)
"""
    opened = await begun(bench(scripted(PARROT + body), auth="api-key"))

    seen = orjson.loads((await told(opened.session, "go")).text)

    assert seen[1] == ["authenticate", {"methodId": "api-key"}]
    await opened.session.close()


@pytest.mark.parametrize(
    ("known", "offered"),
    [
        (None, {}),
        ("s1", {"loadSession": True}),
        ("s1", {"sessionCapabilities": {"resume": {}}}),
    ],
)
async def test_an_agent_that_wants_to_be_logged_in_says_how(
    bench: Bench, known: str | None, offered: dict[str, object]
) -> None:
    body = f"""
def initialize(message):
    answer(message, protocolVersion=1, agentCapabilities={offered!r})
def refuse(message):
    send(id=message["id"], error={{"code": -32000, "message": "Authentication required"}})
new = load = resume = refuse
"""
    workbench = bench(scripted(body))

    with pytest.raises(AgentLoginNeeded, match=r"login needed.*`agent-bridge agents login demo`"):
        await begun(workbench, known)

    assert len(workbench.processes.records) == 1
    assert carriers(workbench.marker) == []


async def test_a_model_of_an_older_draft_is_set_in_its_own_way(bench: Bench) -> None:
    body = """
def new(message):
    answer(message, sessionId="s1", models={"currentModelId": "auto", "availableModels": [
        {"modelId": "auto", "name": "Auto"}, {"modelId": "pro", "name": "Pro"}]})
def set_model(message):
    note(message)
    answer(message)
"""
    workbench = bench(scripted(PARROT + body), model="pro")
    opened = await begun(workbench)

    seen = orjson.loads((await told(opened.session, "go")).text)

    assert seen[-1] == ["session/set_model", {"sessionId": "s1", "modelId": "pro"}]
    with pytest.raises(AgentRefused, match="no model 'huge'; offered: auto, pro"):
        await opened.session.configure(mode=None, model="huge")
    await opened.session.close()


async def test_an_agent_gets_the_tool_servers_that_it_can_reach(bench: Bench) -> None:
    body = """
def initialize(message):
    answer(message, protocolVersion=1, agentCapabilities={"mcpCapabilities": {"http": True}})
"""
    servers = (
        McpServerStdio(name="local", command="tool", args=["-v"], env=[]),
        HttpMcpServer(type="http", name="web", url="http://127.0.0.1:1/mcp", headers=[]),
        SseMcpServer(type="sse", name="old", url="http://127.0.0.1:1/sse", headers=[]),
    )
    opened = await begun(bench(scripted(PARROT + body), mcp_servers=servers))

    seen = orjson.loads((await told(opened.session, "go")).text)

    assert seen[0][1]["mcpServers"] == [
        {"name": "local", "command": "tool", "args": ["-v"], "env": []},
        {"type": "http", "name": "web", "url": "http://127.0.0.1:1/mcp", "headers": []},
    ]
    await opened.session.close()


async def test_a_conversation_is_closed_before_its_process_ends_where_that_is_offered(
    bench: Bench,
) -> None:
    workbench = bench()
    path = workbench.workspace / "closed"
    body = f"""
def initialize(message):
    offered = {{"sessionCapabilities": {{"close": {{}}}}}}
    answer(message, protocolVersion=1, agentCapabilities=offered)
def close(message):
    open({str(path)!r}, "w").write(message["params"]["sessionId"])
    answer(message)
"""
    opened = await begun(bench(scripted(body)))

    await opened.session.close()

    assert path.read_text() == "s1"


@pytest.mark.parametrize("how", ["hang", "fail"])
async def test_an_agent_that_cannot_close_a_conversation_ends_all_the_same(
    bench: Bench, how: str
) -> None:
    workbench = bench(faults=f"1,{how}-close", timeouts=replace(AgentTimeouts(), close=0.1))
    opened = await begun(workbench)

    await opened.session.close()

    assert carriers(workbench.marker) == []


async def test_what_failed_in_the_probe_is_not_used(bench: Bench, tmp_path: Path) -> None:
    first = await begun(bench())
    await told(first.session, "say hello")
    await first.session.close()
    path, argv = tmp_path / "card.json", (sys.executable, str(DEMO))
    failed = (ProbeStep("resume", "fails", 0.1), ProbeStep("load", "works", 0.1))
    write_card(path, Card("demo", argv, VERSION, 0.0, failed))

    again = await begun(bench(card=path), first.session.acp_session_id)

    assert again.how == "loaded"
    await again.session.close()


async def test_a_card_of_another_version_says_nothing(bench: Bench, tmp_path: Path) -> None:
    first = await begun(bench())
    await told(first.session, "say hello")
    await first.session.close()
    path, argv = tmp_path / "card.json", (sys.executable, str(DEMO))
    write_card(path, Card("demo", argv, "0.0.1", 0.0, (ProbeStep("resume", "fails", 0.1),)))

    again = await begun(bench(card=path), first.session.acp_session_id)

    assert again.how == "resumed"
    await again.session.close()


async def test_a_missing_command_is_named_with_its_remedy(bench: Bench) -> None:
    workbench = bench(("no-such-agent", "--acp"), install="Run npm install -g no-such-agent.")

    with pytest.raises(AgentNotStarted, match=r"'no-such-agent' was not found.*npm install"):
        await begun(workbench)


async def test_a_missing_workspace_is_said(bench: Bench) -> None:
    workbench = bench()
    workbench.workspace.rmdir()

    with pytest.raises(AgentNotStarted):
        await begun(workbench)


async def test_an_unknown_agent_is_no_other_agent(bench: Bench) -> None:
    workbench = bench()
    stranger = session()
    stranger = replace(stranger, key=replace(stranger.key, agent="stranger"))

    with pytest.raises(NotFound):
        await workbench.launcher.open(stranger, Workspace(workbench.workspace), Memory())


@pytest.mark.parametrize("step", ["initialize", "new"])
async def test_an_agent_that_hangs_at_the_start_is_ended(bench: Bench, step: str) -> None:
    hurry = replace(AgentTimeouts(), **{step: 0.2})
    workbench = bench(faults=f"1,slow-exit,hang-{step}", timeouts=hurry)

    with pytest.raises(AgentTimedOut, match=step):
        await begun(workbench)

    assert carriers(workbench.marker) == []


async def test_an_agent_that_exits_at_the_start_says_why(bench: Bench) -> None:
    workbench = bench(
        (sys.executable, "-c", "import sys; sys.exit('node is too old')"), timeouts=AgentTimeouts()
    )

    with pytest.raises(AgentDied, match=r"exit status 1.*node is too old"):
        await begun(workbench)


async def test_an_agent_that_speaks_another_version_is_ended_with_a_remedy(bench: Bench) -> None:
    with pytest.raises(AgentNotStarted, match=r"speaks version 2 of.*Install a version of"):
        await begun(bench(faults="only-v2"))

    alien = "def initialize(message): answer(message, protocolVersion=2, capabilities={}, info=7)\n"
    with pytest.raises(AgentNotStarted, match="version 2"):
        await begun(bench(scripted(alien)))


async def test_a_start_that_is_cancelled_leaves_nothing(bench: Bench) -> None:
    workbench = bench(faults="1,hang-new")
    opening = asyncio.ensure_future(begun(workbench))
    async with asyncio.timeout(BOUND):
        while not workbench.processes.records:  # noqa: ASYNC110
            await asyncio.sleep(0.005)

    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening

    assert carriers(workbench.marker) == []


async def test_a_process_is_on_record_before_its_agent_can_be_prompted(bench: Bench) -> None:
    workbench = bench()
    plain, failures = workbench.processes.started, 2

    async def stubborn(process: ProcessRecord) -> None:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise StoreUnavailable("locked")
        await plain(process)

    workbench.processes.started = stubborn  # type: ignore[method-assign]  # a store with a cold

    opened = await begun(workbench)

    assert [what for what, _ in workbench.processes.diary] == ["started"]
    assert workbench.clock.slept == [1.0, 1.0]
    await opened.session.close()


async def test_a_conversation_rests_before_it_is_loaded_where_the_agent_needs_that(
    bench: Bench,
) -> None:
    workbench = bench(settle_seconds_before_load=61.0)
    young = session("demo-0123", updated_at=workbench.clock.now() - 20)

    opened = await workbench.launcher.open(young, Workspace(workbench.workspace), Memory())

    assert workbench.clock.slept == [41.0]
    await opened.session.close()


async def test_an_agent_can_be_confined(bench: Bench) -> None:
    found = find_bubblewrap(os.environ["PATH"])
    if not isinstance(found, Bubblewrap):
        pytest.skip(f"bubblewrap not found on this machine: {found.reason}")
    anywhere = Path("/nowhere")  # filled in by the launcher
    needed = visible_prefixes((sys.executable, str(DEMO)), path=os.environ["PATH"])
    confinement = Confinement(home=anywhere, workspace=anywhere, prefixes=needed)
    workbench = bench(sandbox=found, confinement=confinement)

    opened = await begun(workbench)
    await told(opened.session, "write mine.txt words", Memory(answer="allow"))

    assert (workbench.workspace / "mine.txt").exists()
    os.killpg(workbench.processes.records[0].group, signal.SIGKILL)
    with pytest.raises(AgentDied):
        await told(opened.session, "say more")
