"""A conversation with a real process: order, asks, cancel, and every way an agent can fail."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from pathlib import Path

import pytest

from app.acp import transport
from app.acp.peer import AgentTimeouts
from app.errors import AgentDied, AgentMisbehaved, AgentRefused, AgentTimedOut, Conflict
from app.model.background import Woken
from app.model.ports import AgentSession, OpenedSession
from app.model.updates import (
    BridgeUpdate,
    PromptEnd,
    StateUpdate,
    TextUpdate,
    ThoughtUpdate,
    Tokens,
    ToolUpdate,
    UsageUpdate,
)
from app.model.workspaces import Workspace
from tests.unit.acp.helpers import BOUND, Bench, Memory, Workbench, scripted, session
from tests.unit.children.helpers import carriers

pytestmark = pytest.mark.anyio

QUICK = AgentTimeouts(initialize=BOUND, new=BOUND, load=BOUND, configure=BOUND, cancel=0.1)


async def opened(workbench: Workbench) -> AgentSession:
    return (await begun(workbench)).session


async def begun(workbench: Workbench, acp_session_id: str | None = None) -> OpenedSession:
    async with asyncio.timeout(BOUND):
        return await workbench.launcher.open(
            session(acp_session_id), Workspace(workbench.workspace), workbench.between
        )


async def told(agent: AgentSession, words: str, listener: Memory | None = None) -> Memory:
    memory = listener or Memory()
    async with asyncio.timeout(4 * BOUND):
        memory.end = await agent.prompt(words, memory)
    return memory


def memory_of_this_process() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def test_a_prompt_is_answered_and_ends(bench: Bench) -> None:
    agent = await opened(bench())

    heard = await told(agent, "say hello there")

    assert "hello there" in heard.text
    assert heard.end.stop_reason == "end_turn"
    assert agent.alive
    await agent.close()
    assert not agent.alive


async def test_five_hundred_updates_arrive_in_order_before_the_prompt_ends(bench: Bench) -> None:
    class Slow(Memory):
        async def on_update(self, update: BridgeUpdate) -> None:
            await asyncio.sleep(0)
            await super().on_update(update)

    agent = await opened(
        bench(
            scripted("""
def prompt(message):
    for number in range(500):
        update("tool_call_update", toolCallId=str(number))
    answer(message, stopReason="end_turn")
    say("too late")
    update("current_mode_update", currentModeId="late")
""")
        )
    )

    heard = await told(agent, "go", Slow())

    calls = [update.call for update in heard.heard if isinstance(update, ToolUpdate)]
    assert calls == [str(number) for number in range(500)]
    assert heard.text == ""
    await agent.close()


async def test_what_comes_after_the_answer_is_the_agents_own_work(bench: Bench) -> None:
    workbench = bench(
        scripted("""
def prompt(message):
    say("in time")
    answer(message, stopReason="end_turn")
    say("too late")
    update("current_mode_update", currentModeId="late")
""")
    )
    agent = await opened(workbench)

    heard = await told(agent, "go")
    await asyncio.wait_for(workbench.between.something.wait(), BOUND)

    own = Memory()
    end = await agent.follow(own, turn=2)

    assert heard.heard == [TextUpdate("in time")]
    assert workbench.between.heard == [StateUpdate("mode", "late")]
    assert workbench.between.woken == [Woken(turn=0)]
    assert own.heard == [StateUpdate("mode", "late"), TextUpdate("too late")]
    assert end == PromptEnd("end_turn")
    await agent.close()


async def test_a_permission_is_asked_and_the_answer_reaches_the_agent(bench: Bench) -> None:
    workbench = bench()
    agent = await opened(workbench)

    allowed = await told(agent, "write a.txt words", Memory(answer="allow"))
    refused = await told(agent, "write b.txt words", Memory(answer="reject"))

    assert (workbench.workspace / "a.txt").read_text().strip() == "words"
    assert not (workbench.workspace / "b.txt").exists()
    assert [option.name for option in allowed.asked[0].options] == [
        "Allow once",
        "Allow always",
        "Reject",
    ]
    assert allowed.asked[0].arguments_hash
    assert allowed.asked[0].arguments_hash != refused.asked[0].arguments_hash
    await agent.close()


async def test_an_ask_is_seen_before_updates_that_follow_it(bench: Bench) -> None:
    class Watchful(Memory):
        async def on_ask(self, request: object) -> str | None:
            self.before = len(self.heard)
            return None

    agent = await opened(
        bench(
            scripted("""
def prompt(message):
    global asked
    asked = message
    update("tool_call", toolCallId="before", title="t")
    send(id="p", method="session/request_permission", params={
        "sessionId": "s1", "toolCall": {"toolCallId": "c"}, "options": []})
    for number in range(50):
        update("tool_call_update", toolCallId="after")
def reply(message):
    say(message["result"]["outcome"]["outcome"])
    answer(asked, stopReason="end_turn")
""")
        )
    )
    listener = Watchful()

    heard = await told(agent, "go", listener)

    assert listener.before == 1
    assert heard.text == "cancelled"
    await agent.close()


async def test_what_the_bridge_does_not_offer_is_refused(bench: Bench) -> None:
    agent = await opened(
        bench(
            scripted("""
METHODS = {
    "fs/read_text_file": {"sessionId": "s1", "path": "/etc/passwd"},
    "terminal/create": {"sessionId": "s1", "command": "sh"},
    "terminal/output": {"sessionId": "s1", "terminalId": "t"},
    "_vendor/thing": {},
    "no/such": {},
}
def prompt(message):
    global asked
    asked = message
    for method, params in METHODS.items():
        send(id=method, method=method, params=params)
def reply(message):
    say(f"{message['error']['code']} ")
    METHODS.pop(message["id"])
    if not METHODS:
        answer(asked, stopReason="end_turn")
""")
        )
    )

    heard = await told(agent, "go")

    assert heard.text.split() == ["-32601"] * 5
    await agent.close()


async def test_a_second_prompt_has_to_wait_for_the_first(bench: Bench) -> None:
    agent = await opened(bench())
    first = asyncio.ensure_future(told(agent, "hold gate"))
    await asyncio.sleep(0)

    with pytest.raises(Conflict):
        await agent.prompt("say me too", Memory())

    await agent.cancel()
    assert (await first).end.stop_reason == "cancelled"
    await agent.close()


async def test_cancel_ends_the_turn_and_the_next_one_can_start(bench: Bench) -> None:
    agent = await opened(bench())
    listener = Memory()
    turn = asyncio.ensure_future(told(agent, "say begun\nhold gate", listener))
    await asyncio.wait_for(listener.something.wait(), BOUND)

    await agent.cancel()

    assert (await turn).end.stop_reason == "cancelled"
    assert "again" in (await told(agent, "say again")).text
    await agent.close()


async def test_cancel_answers_open_asks_with_cancelled(bench: Bench) -> None:
    workbench = bench()
    agent = await opened(workbench)
    listener = Memory(answer="allow", patience=asyncio.Event())
    turn = asyncio.ensure_future(told(agent, "write a.txt words", listener))
    await asyncio.wait_for(listener.asking.wait(), BOUND)

    await agent.cancel()

    assert (await turn).end.stop_reason == "cancelled"
    assert not (workbench.workspace / "a.txt").exists()
    await agent.close()


async def test_a_cancel_that_comes_before_the_prompt_is_sent_keeps_it_from_being_sent(
    bench: Bench,
) -> None:
    class Busy(Memory):
        async def on_update(self, update: BridgeUpdate) -> None:
            await super().on_update(update)
            await released.wait()

    released = asyncio.Event()
    workbench = bench(
        scripted("""
def new(message):
    answer(message, sessionId="s1")
    update("current_mode_update", currentModeId="free")
def prompt(message):
    open("prompted", "w").close()
    answer(message, stopReason="end_turn")
""")
    )
    agent = await opened(workbench)
    async with asyncio.timeout(BOUND):
        while not workbench.between.heard:
            workbench.between.something.clear()
            await workbench.between.something.wait()
    heard = Busy()

    prompting = asyncio.ensure_future(told(agent, "work", heard))
    await heard.something.wait()
    cancelling = asyncio.ensure_future(agent.cancel())
    await asyncio.wait([cancelling], timeout=0)
    released.set()
    await asyncio.gather(prompting, cancelling)

    assert heard.end == PromptEnd("cancelled")
    assert agent.alive
    assert not (workbench.workspace / "prompted").exists()


async def test_cancel_without_a_turn_does_nothing(bench: Bench) -> None:
    agent = await opened(bench())

    await agent.cancel()

    assert agent.alive
    await agent.close()


async def test_an_agent_that_answers_cancel_with_an_error_was_cancelled(bench: Bench) -> None:
    agent = await opened(
        bench(
            scripted("""
def prompt(message):
    global asked
    asked = message
    say("begun")
def cancel(message):
    send(id=asked["id"], error={"code": -32603, "message": "aborted"})
""")
        )
    )
    listener = Memory()
    turn = asyncio.ensure_future(told(agent, "go", listener))
    await asyncio.wait_for(listener.something.wait(), BOUND)

    await agent.cancel()

    assert (await turn).end == PromptEnd("cancelled")
    await agent.close()


async def test_an_agent_deaf_to_cancel_is_killed(bench: Bench) -> None:
    workbench = bench(faults="1,slow-exit,hang-cancel", timeouts=QUICK)
    agent = await opened(workbench)
    listener = Memory()
    turn = asyncio.ensure_future(told(agent, "children 2\nsay begun\nhold gate", listener))
    await asyncio.wait_for(listener.something.wait(), BOUND)

    await agent.cancel()

    with pytest.raises(AgentTimedOut, match=r"session/cancel within 0\.1 s"):
        await turn
    assert not agent.alive
    assert carriers(workbench.marker) == []


async def test_a_killed_agent_is_reported_at_once(bench: Bench) -> None:
    workbench = bench()
    agent = await opened(workbench)
    listener = Memory()
    turn = asyncio.ensure_future(told(agent, "say begun\nhold gate", listener))
    await asyncio.wait_for(listener.something.wait(), BOUND)

    os.killpg(workbench.processes.records[0].group, signal.SIGKILL)

    with pytest.raises(AgentDied, match="signal 9"):
        await turn
    assert not agent.alive


async def test_a_dead_agent_says_why_also_when_a_grandchild_holds_its_output(bench: Bench) -> None:
    workbench = bench(
        scripted("""
def prompt(message):
    say("half an ans")
    print("Traceback:\\n  out of   ideas", file=sys.stderr, flush=True)
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    os._exit(3)
""")
    )
    agent = await opened(workbench)
    listener = Memory()

    with pytest.raises(AgentDied, match=r"exit status 3.*Traceback: out of ideas"):
        await told(agent, "go", listener)

    assert listener.text == "half an ans"
    assert carriers(workbench.marker) == []


async def test_an_agent_that_dies_between_turns_is_not_alive(bench: Bench) -> None:
    workbench = bench()
    agent = await opened(workbench)

    os.killpg(workbench.processes.records[0].group, signal.SIGKILL)

    async with asyncio.timeout(BOUND):
        while agent.alive:  # noqa: ASYNC110 - that nobody is told is the point
            await asyncio.sleep(0)
    with pytest.raises(AgentDied, match="signal 9"):
        await told(agent, "say anything")


async def test_an_agent_that_closes_its_output_is_ended(bench: Bench) -> None:
    agent = await opened(
        bench(
            scripted("""
def prompt(message):
    os.close(1)
    os.closerange(3, 256)  # uvloop lets a child inherit its pipes a second time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1000)
""")
        )
    )

    with pytest.raises(AgentMisbehaved, match="closed its output"):
        await told(agent, "go")


async def test_a_hundred_megabytes_without_a_line_break_cost_a_few(bench: Bench) -> None:
    agent = await opened(bench())
    gc.collect()
    before = memory_of_this_process()

    with pytest.raises(AgentMisbehaved, match="more than 8 MiB"):
        await told(agent, "line 104857600")

    assert memory_of_this_process() - before < 64 * 2**20
    assert not agent.alive


async def test_a_hundred_thousand_updates_are_all_heard(bench: Bench) -> None:
    agent = await opened(bench())

    heard = await told(agent, "flood 100000")

    assert len(heard.text) >= 100_000
    assert len(heard.heard) < 50_000, "text that arrives together is told together"
    await agent.close()


async def test_floods_of_thoughts_and_tools_are_heard_too(bench: Bench) -> None:
    agent = await opened(bench())

    heard = await told(agent, "thoughts 2000\ntools 2000")

    assert any(isinstance(update, ThoughtUpdate) for update in heard.heard)
    assert sum(isinstance(update, ToolUpdate) for update in heard.heard) >= 2000
    await agent.close()


async def test_a_thousand_asks_at_once_are_capped_and_the_turn_goes_on(bench: Bench) -> None:
    workbench = bench()
    agent = await opened(workbench)
    patience = asyncio.Event()
    listener = Memory(answer="allow", patience=patience)
    turn = asyncio.ensure_future(told(agent, "requests 1000\nsay done", listener))

    async with asyncio.timeout(BOUND):
        while workbench.counts.dropped["refused_request"] < 1000 - 64:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    assert len(listener.asked) == 64
    patience.set()

    assert "done" in (await turn).text
    await agent.close()


async def test_garbage_does_no_harm(bench: Bench) -> None:
    workbench = bench()
    agent = await opened(workbench)

    heard = await told(agent, "garbage 1000\nsay fine")

    assert "fine" in heard.text
    assert sum(workbench.counts.dropped.values()) > 0
    await agent.close()


async def test_an_agent_that_stops_reading_is_given_up(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "WRITE_SECONDS", 0.1)
    workbench = bench(scripted("def new(message, plain=new): plain(message); time.sleep(1000)\n"))
    agent = await opened(workbench)

    with pytest.raises(AgentMisbehaved, match="did not read its input"):
        await told(agent, "x" * 2_000_000)

    assert carriers(workbench.marker) == []


async def test_words_that_are_no_text_are_sent_as_well_as_they_can(bench: Bench) -> None:
    agent = await opened(bench())

    heard = await told(agent, "say half a \ud83d smile")

    assert "half a ? smile" in heard.text
    await agent.close()


async def test_a_filled_stderr_stops_nobody(bench: Bench) -> None:
    agent = await opened(bench())

    heard = await told(agent, "stderr 5000000\nsay fine")

    assert "fine" in heard.text
    await agent.close()


async def test_an_error_of_the_agent_is_told_with_its_details(bench: Bench) -> None:
    agent = await opened(
        bench(
            scripted("""
def prompt(message):
    send(id=message["id"], error={"code": 400, "message": "Internal error",
                                  "data": {"details": "no such\\nmodel"}})
""")
        )
    )

    with pytest.raises(AgentRefused, match=r"Internal error: no such model \(code 400\)"):
        await told(agent, "go")

    assert agent.alive
    await agent.close()


async def test_an_answer_without_sense_is_a_breach(bench: Bench) -> None:
    agent = await opened(
        bench(
            scripted("""
def prompt(message):
    send(id=message["id"], result="done")
""")
        )
    )

    with pytest.raises(AgentMisbehaved, match="session/prompt is invalid"):
        await told(agent, "go")

    assert not agent.alive


async def test_the_usage_of_a_prompt_is_told_unless_the_agent_told_it_before(bench: Bench) -> None:
    agent = await opened(
        bench(
            scripted("""
def prompt(message):
    if message["params"]["prompt"][0]["text"] == "both":
        update("usage_update", used=5, size=10)
    usage = {"totalTokens": 7, "inputTokens": 3, "outputTokens": 4, "cachedReadTokens": 2}
    answer(message, stopReason="end_turn", usage=usage)
""")
        )
    )

    only_at_the_end = await told(agent, "end")
    both = await told(agent, "both")

    tokens = Tokens(input=1, output=4, cache_read=2)
    assert only_at_the_end.end.usage == UsageUpdate(used=7, tokens=tokens)
    assert both.end.usage == UsageUpdate(tokens=tokens)
    assert both.heard == [UsageUpdate(used=5, size=10)]
    await agent.close()


async def test_a_listener_that_fails_ends_the_prompt_with_its_own_error(bench: Bench) -> None:
    class Broken(Memory):
        async def on_update(self, update: BridgeUpdate) -> None:
            raise LookupError("no such turn")

    agent = await opened(bench())

    with pytest.raises(LookupError, match="no such turn"):
        await told(agent, "say hello", Broken())

    assert not agent.alive


async def test_a_prompt_that_nobody_waits_for_does_not_go_on(bench: Bench) -> None:
    workbench = bench()
    agent = await opened(workbench)
    listener = Memory()
    turn = asyncio.ensure_future(told(agent, "say begun\nhold gate", listener))
    await asyncio.wait_for(listener.something.wait(), BOUND)

    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn

    assert not agent.alive
    await agent.close()
    assert carriers(workbench.marker) == []


async def test_closing_twice_and_at_once_closes_once(bench: Bench) -> None:
    workbench = bench()
    agent = await opened(workbench)

    await asyncio.gather(agent.close(), agent.close())
    await agent.close()

    assert [what for what, _ in workbench.processes.diary] == ["started", "ended"]


async def test_closing_during_a_prompt_ends_the_prompt(bench: Bench) -> None:
    agent = await opened(bench())
    listener = Memory()
    turn = asyncio.ensure_future(told(agent, "say begun\nhold gate", listener))
    await asyncio.wait_for(listener.something.wait(), BOUND)

    await agent.close()

    with pytest.raises(AgentDied):
        await turn


async def test_a_busy_agent_does_not_hold_up_another_one(bench: Bench) -> None:
    flooding, calm = await opened(bench()), await opened(bench())
    flood = asyncio.ensure_future(told(flooding, "flood 200000"))
    answers = 0

    while not flood.done():
        await told(calm, "say hello")
        answers += 1

    assert answers > 3
    await asyncio.gather(flooding.close(), calm.close())
