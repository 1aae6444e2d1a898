"""Hours on the simulated Slack, played by the clock: silences, limits, long answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from app.core.outbox import Outbox
from app.model.keys import SessionKey
from app.model.posts import NewPost, PostContent, ToolLine
from app.model.updates import PlanStep
from app.services.slack.adapter import SlackAdapter
from app.store.database import Database
from app.store.posts import finish_post, insert_post
from app.store.stores import Stores
from sim.slack.blocks import cards
from sim.slack.model import App, Message
from sim.slack.server import SimulatedSlack
from tests.support.base import make_base
from tests.support.clock import ManualClock
from tests.support.memory import open_stores
from tests.support.slack import slack_adapter, too_often

pytestmark = [pytest.mark.anyio, pytest.mark.one_database]

LOOK_SECONDS = 0.005
Plan = tuple[PlanStep, ...]
Tools = tuple[ToolLine, ...]
PLAN = (PlanStep("read", "completed"), PlanStep("write", "in_progress"))
TOOL = (ToolLine("t1", "cat a.py", "in_progress"),)


@dataclass
class Calls:
    """Counts the calls of an adapter that are on their way."""

    call: Callable[..., Awaitable[Any]]
    open: int = 0

    async def __call__(self, *args: Any, **more: Any) -> Any:
        self.open += 1
        try:
            return await self.call(*args, **more)
        finally:
            self.open -= 1


@dataclass
class Scene:
    """An outbox, an adapter and a Slack that share a clock."""

    clock: ManualClock
    slack: SimulatedSlack
    app: App
    ann: str
    channel: str
    thread: str
    database: Database
    stores: Stores
    adapter: SlackAdapter
    outbox: Outbox
    calls: Calls

    @property
    def target(self) -> SessionKey:
        return SessionKey("slack", f"{self.channel}:{self.thread}", "claude")

    def content(
        self,
        state: str,
        text: str = "",
        plan: Plan = (),
        tools: Tools = (),
        note: str = "",
    ) -> PostContent:
        return PostContent(
            kind="turn",
            state=state,
            text=text,
            plan=plan,
            tools=tools,
            note=note,
            asker=self.ann,
        )

    async def begin(self) -> int:
        new = NewPost("turn:1", self.target, self.content("starting"))
        post = await self.database.writer.run(lambda c: insert_post(c, new, 0.0))
        self.outbox.send(post)
        return post

    def show(self, post: int, text: str, plan: Plan = (), tools: Tools = ()) -> None:
        content = self.content("working", text, plan, tools)
        self.outbox.progress(post, self.target, lambda: content)

    async def finish(
        self, text: str, plan: Plan = (), tools: Tools = (), *, narrated: int = 0
    ) -> None:
        content = replace(self.content("done", text, plan, tools), narrated=narrated)
        post = await self.database.writer.run(lambda c: finish_post(c, "turn:1", content))
        assert post is not None
        self.outbox.send(post)

    def shown(self) -> list[Message]:
        with self.slack.changed:
            return [each for each in self.slack.messages if each.app is self.app]

    async def until(self, done: Callable[[], object]) -> None:
        """Wait until something is true of Slack, while the clock stands still."""
        await asyncio.to_thread(self.slack.wait, done, 30.0)

    async def play(self, done: Callable[[], object], step: float = 1.0) -> None:
        """Let time pass, step by step, until something is true of Slack."""
        async with asyncio.timeout(60):
            while not done():
                await asyncio.sleep(LOOK_SECONDS)  # Slack answers in a thread of its own
                passes = self.clock.sleepers and not self.is_calling()
                await self.clock.advance(step if passes else 0)

    def is_calling(self) -> bool:
        """Tell whether a call to Slack is on its way: it takes no time here, unless told to."""
        stalls = [each for each in self.slack.stalls.values() if not each.over.is_set()]
        return self.calls.open > sum(each.waiting for each in stalls)

    async def pass_minutes(self, minutes: float) -> None:
        """Let time pass, while the bridge and Slack do what is due."""
        until = self.clock.now() + 60 * minutes
        await self.play(lambda: self.clock.now() >= until, step=min(10.0, 60 * minutes))

    def told(self) -> list[str]:
        """List what the person who asked was notified of: the words, or the cards."""
        with self.slack.changed:
            return [each.words or each.cards for each in self.slack.notified(self.ann)]

    @asynccontextmanager
    async def restarted(self, folder: Path) -> AsyncIterator[Scene]:
        """Kill the bridge, and start another one on the same store."""
        await self.outbox.close(grace=0)
        await self.adapter.close()
        async with started(folder, self.clock, self.slack, self.stores) as (
            adapter,
            outbox,
            calls,
        ):
            await outbox.start()
            yield replace(self, adapter=adapter, outbox=outbox, calls=calls)

    def statuses(self) -> list[float]:
        """List when the agent was said to be working."""
        return [c.at for c in self.slack.calls if c.arguments.get("status") == "processing"]

    def is_sent(self) -> bool:
        post = self.stores.posts.post(1)
        return post is not None and post.state == "done"


@asynccontextmanager
async def started(
    folder: Path, clock: ManualClock, slack: SimulatedSlack, stores: Stores
) -> AsyncIterator[tuple[SlackAdapter, Outbox, Calls]]:
    app = slack.apps["claude"]
    adapter = slack_adapter(slack, app, clock=clock, folder=folder, title="Fix the login")
    outbox = Outbox(make_base(stores, clock, {"slack:claude": adapter}))
    api = adapter._api
    calls = Calls(api._call)
    api._call = calls  # type: ignore[method-assign]  # it calls the same
    try:
        yield adapter, outbox, calls
    finally:
        await outbox.close(grace=0)
        await adapter.close()


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    clock = ManualClock()
    with SimulatedSlack(clock.now) as slack, open_stores(tmp_path, clock) as (database, stores):
        app = slack.app("claude")
        ann = slack.person("Ann")
        channel = slack.channel("general", [ann, app])
        thread = slack.say(ann, channel, "please work")
        async with started(tmp_path, clock, slack, stores) as (adapter, outbox, calls):
            yield Scene(
                clock, slack, app, ann, channel, thread, database, stores, adapter, outbox, calls
            )


def says(scene: Scene, words: str) -> bool:
    """Tell whether the first message says something."""
    return words.strip() in scene.shown()[0].words


def card_states(message: Message) -> dict[str, str]:
    """Tell the state of each card of an edited message."""
    return {card["task_id"]: card["status"] for card in cards(message.blocks)}


async def test_twelve_minutes_end_in_one_notification_with_the_whole_answer(scene: Scene) -> None:
    status = (scene.app, scene.channel, scene.thread)
    post = await scene.begin()
    await scene.until(lambda: scene.shown())
    scene.show(post, "Looking.", PLAN, TOOL)
    await scene.play(lambda: "Looking." in scene.shown()[0].words)
    await scene.pass_minutes(6)

    [progress] = scene.shown()
    assert "Still working" in scene.told()[0]
    assert scene.slack.status(*status) == "processing"
    assert card_states(progress) == {"plan-0": "complete", "plan-1": "in_progress"}
    scene.show(post, "Looking. Found it.", PLAN, TOOL)
    await scene.play(lambda: "Found it." in scene.shown()[0].words)
    await scene.pass_minutes(6)
    await scene.finish("Looking. Found it. Mended.", PLAN, TOOL)
    await scene.play(scene.is_sent)

    [_, answer] = scene.shown()
    assert answer.words == "Looking. Found it. Mended.\nPlan 1/2"
    assert progress.words == "Done\nread\nwrite\nThe answer is below."
    assert card_states(progress) == {"plan-0": "complete", "plan-1": "complete"}
    assert scene.told()[1:] == [answer.words]
    assert scene.slack.reds == []
    await scene.until(lambda: scene.slack.status(*status) == "active")
    assert too_often(scene.slack) == []


async def test_a_bridge_killed_in_minute_six_notifies_once_with_the_whole_answer(
    scene: Scene, tmp_path: Path
) -> None:
    status = (scene.app, scene.channel, scene.thread)
    post = await scene.begin()
    await scene.until(lambda: scene.shown())
    scene.show(post, "Looking.", PLAN, TOOL)
    await scene.play(lambda: "Looking." in scene.shown()[0].words)
    await scene.pass_minutes(6)
    async with scene.restarted(tmp_path) as again:
        again.show(post, "Looking. Found it.", PLAN, TOOL)
        await again.play(lambda: "Found it." in again.shown()[0].words)
        await again.pass_minutes(6)
        await again.finish("Looking. Found it. Mended.", PLAN, TOOL)
        await again.play(again.is_sent)
        await again.until(lambda: scene.slack.status(*status) == "active")

        [progress, answer] = again.shown()
        assert answer.words == "Looking. Found it. Mended.\nPlan 1/2"
        assert "The answer is below." in progress.words
        assert [words for words in again.told() if "Mended." in words] == [answer.words]
        assert len(again.told()) == 2
        assert scene.slack.reds == []


@pytest.mark.parametrize(("idle_seconds", "reds"), [(30.0, 0), (10.0, 1)])
async def test_a_silent_agent_shows_no_error_for_long_where_slack_ends_idle_streams(
    scene: Scene, idle_seconds: float, reds: int
) -> None:
    scene.slack.stream_idle_seconds = idle_seconds
    await scene.begin()
    await scene.until(lambda: scene.shown())
    await scene.pass_minutes(4)

    with scene.slack.changed:
        scene.slack.pass_time()
        assert len(scene.slack.reds) == reds
        assert not scene.shown()[0].red
    await scene.finish("Mended.")
    await scene.play(scene.is_sent)
    assert scene.told()[-1] == "Mended."


async def test_a_step_that_an_agent_never_ticks_is_not_red_under_its_answer(scene: Scene) -> None:
    post = await scene.begin()
    await scene.until(lambda: scene.shown())
    scene.show(post, "Looking.", PLAN, TOOL)
    await scene.play(lambda: "Looking." in scene.shown()[0].words)
    await scene.finish("Looking. Mended.", PLAN, TOOL)
    await scene.play(scene.is_sent)

    [answer] = scene.shown()
    assert answer.stream is not None
    assert {card["status"] for card in answer.stream.tasks.values()} == {"complete"}
    assert scene.slack.reds == []
    assert scene.told() == ["Looking. Mended.\nPlan 1/2"]


async def test_cards_do_not_repeat_what_they_said(scene: Scene) -> None:
    post = await scene.begin()
    await scene.until(lambda: scene.shown())
    for number in range(1, 4):
        tool = ToolLine("t1", "cat", "completed", output="line\n" * number)
        content = scene.content("working", "And. " * number, (), (tool,))
        content = replace(content, thought="Let me look. " * number, verbosity="full")
        scene.outbox.progress(post, scene.target, partial(replace, content))
        await scene.play(partial(says, scene, "And. " * number))

    stream = scene.shown()[0].stream
    assert stream is not None
    [turn, tool_card] = stream.tasks.values()
    assert "details" not in turn
    assert turn["title"].count("Let me look.") == 3
    assert tool_card["output"].count("line") == 1


async def test_a_bridge_killed_between_two_parts_tells_the_rest(
    scene: Scene, tmp_path: Path
) -> None:
    lines = "".join(f"line {number:04d}\n" for number in range(900))
    post = await scene.begin()
    await scene.until(lambda: scene.shown())
    scene.slack.stall("chat.startStream", times=1000)
    scene.show(post, lines)
    await scene.play(lambda: scene.slack.stalls["chat.startStream"].waiting)
    async with scene.restarted(tmp_path) as again:
        scene.slack.go_on("chat.startStream")
        again.show(post, f"{lines}More. ")
        await again.play(lambda: any("More." in each.words for each in again.shown()))
        await again.finish(f"{lines}More. The end.")
        await again.play(again.is_sent)

        found = "\n".join(each.words for each in again.shown()).splitlines()
        assert [line for line in found if line.startswith("line")] == lines.splitlines()
        assert len([words for words in again.told() if "The end." in words]) == 1


async def test_a_bridge_killed_between_the_end_of_a_stream_and_its_rewrite_tells_the_answer_once(
    scene: Scene, tmp_path: Path
) -> None:
    post = await scene.begin()
    await scene.until(lambda: scene.shown())
    scene.show(post, "Looking.", PLAN, TOOL)
    await scene.play(lambda: "Looking." in scene.shown()[0].words)
    scene.slack.stall("chat.update", times=1000)
    await scene.finish("Looking. Mended.", PLAN, TOOL, narrated=len("Looking. "))
    await scene.play(lambda: scene.slack.stalls["chat.update"].waiting)
    async with scene.restarted(tmp_path) as again:
        scene.slack.go_on("chat.update")
        await again.play(again.is_sent)

        assert [words for words in again.told() if "Mended." in words] == [
            "Looking. Mended.\nPlan 1/2"
        ]
        [answer] = again.shown()
        assert answer.words == "Mended.\nPlan 1/2"
        assert scene.slack.reds == []


@pytest.mark.parametrize("minutes", [0, 6])
async def test_a_bridge_killed_right_after_its_answer_does_not_repeat_it(
    scene: Scene, tmp_path: Path, minutes: int
) -> None:
    status = (scene.app, scene.channel, scene.thread)
    post = await scene.begin()
    await scene.until(lambda: scene.shown())
    scene.show(post, "Looking.", PLAN, TOOL)
    await scene.play(lambda: "Looking." in scene.shown()[0].words)
    await scene.pass_minutes(minutes)
    scene.slack.fail("agents.sessions.setStatus", status=500)
    for method in ("chat.stopStream", "chat.postMessage"):
        scene.slack.lose_answers[method] = 1
    await scene.finish("Looking. Mended.", PLAN, TOOL)
    await scene.play(lambda: any("Mended." in words for words in scene.told()))
    scene.slack.mend()
    async with scene.restarted(tmp_path) as again:
        await again.play(again.is_sent)
        await again.until(lambda: scene.slack.status(*status) == "active")

        assert [words for words in again.told() if "Mended." in words] == [
            "Looking. Mended.\nPlan 1/2"
        ]
        assert [each for each in again.shown() if "Looking. Mended." in each.words]
        assert scene.slack.reds == []


async def test_an_answer_arrives_whole_however_much_progress_there_was(scene: Scene) -> None:
    direct = scene.slack.channel("dm", [scene.ann, scene.app], "im")
    scene.channel, scene.thread = direct, scene.slack.say(scene.ann, direct, "work")
    plan = tuple(PlanStep(f"step {number} {'x' * 180}", "completed") for number in range(12))
    tools = tuple(
        ToolLine(f"t{number}", f"cat {number} {'y' * 180}", "completed") for number in range(60)
    )
    lines = "".join(f"line {number:04d}\n" for number in range(980))
    post = await scene.begin()
    await scene.until(lambda: scene.shown())
    await scene.pass_minutes(5)
    scene.show(post, lines[:5_000], plan, tools)
    await scene.play(lambda: "line 0400" in scene.shown()[0].words)

    await scene.finish(lines, plan, tools)
    await scene.play(scene.is_sent)

    found = "\n".join(each.words for each in scene.shown()).splitlines()
    assert [each for each in found if each.startswith("line")] == lines.splitlines()
    refused = [c for c in scene.slack.calls if not c.answer["ok"]]
    assert refused == []


@pytest.mark.parametrize(
    "error", ["messaging_processing_failed", "update_failed", "something_new", "rate_limited"]
)
async def test_an_answer_survives_a_bad_minute_of_slack(scene: Scene, error: str) -> None:
    await scene.begin()
    await scene.until(lambda: scene.shown())
    await scene.pass_minutes(5)
    scene.slack.fail("chat.postMessage", error=error, times=3)
    await scene.finish("Here it is.")

    await scene.play(scene.is_sent)

    assert scene.told()[1:] == ["Here it is."]


async def test_a_slack_without_feedback_buttons_shows_the_answer_all_the_same(
    scene: Scene,
) -> None:
    await scene.begin()
    await scene.until(lambda: scene.shown())
    scene.slack.refused_blocks.add("context_actions")
    await scene.finish("One.")
    await scene.play(scene.is_sent)

    assert [words for words in scene.told() if "One." in words] == ["One."]
    assert scene.shown()[-1].blocks == [{"type": "markdown", "text": "One."}]


async def test_an_answer_of_many_blocks_is_split_and_not_shown_raw(scene: Scene) -> None:
    sections = "".join(f"## Part {number}\n\n{'words ' * 40}\n\n" for number in range(36))
    await scene.begin()
    await scene.until(lambda: scene.shown())
    await scene.pass_minutes(5)
    await scene.finish(sections)

    await scene.play(scene.is_sent)

    parts = [each for each in scene.shown() if "## Part" in each.words]
    assert {block["type"] for each in parts for block in each.blocks} == {"markdown"}
    assert sum(each.words.count("## Part") for each in parts) == 36
    assert len(parts) == 2


@pytest.mark.parametrize("uploads", [True, False])
async def test_an_answer_that_slack_cannot_render_arrives_as_a_file_or_as_plain_text(
    scene: Scene, uploads: bool
) -> None:
    text = "".join(f"line {number:04d}\n" for number in range(800))
    scene.app.scopes -= frozenset() if uploads else {"files:write"}
    await scene.begin()
    await scene.until(lambda: scene.shown())
    await scene.pass_minutes(5)
    scene.slack.refused_blocks.add("markdown")
    await scene.finish(text)

    await scene.play(scene.is_sent)

    with scene.slack.changed:
        files = [file for each in scene.shown() for file in each.files]
        tail = "".join(scene.slack.files[file].content.decode() for file in files)
        shown = "\n".join(each.words for each in scene.shown())
    assert len(files) == uploads
    found = [line for line in f"{shown}\n{tail}".splitlines() if line.startswith("line")]
    assert found == text.splitlines()


async def test_much_progress_leaves_room_for_answers(scene: Scene) -> None:
    scene.app.streams = False
    await scene.begin()
    await scene.until(lambda: scene.shown())
    for number in range(90):
        scene.show(1, f"At {number}.")
        await scene.pass_minutes(1 / 60)
    scene.slack.calls.clear()
    await scene.finish("Here.")
    await scene.play(scene.is_sent)

    assert [c for c in scene.slack.calls if c.answer.get("error") == "ratelimited"] == []
    assert scene.told()[-1] == "Here."


async def test_a_session_is_kept_alive_and_named(scene: Scene) -> None:
    status = (scene.app, scene.channel, scene.thread)
    await scene.begin()
    await scene.until(lambda: scene.slack.status(*status) == "processing")
    await scene.pass_minutes(100)

    assert scene.slack.status(*status) == "processing"
    assert max(later - earlier for earlier, later in pairwise(scene.statuses())) < 3600
    await scene.until(lambda: scene.slack.session(*status).title == "Fix the login")


@pytest.mark.parametrize(
    "error", ["feature_disabled", "not_an_agent", "method_not_supported_for_channel_type"]
)
async def test_where_sessions_are_not_available_the_thread_shows_the_status(
    scene: Scene, error: str
) -> None:
    status = (scene.app, scene.channel, scene.thread)
    scene.app.no_sessions = error
    await scene.begin()
    await scene.until(lambda: scene.slack.status(*status) == "thinking")
    await scene.pass_minutes(4)
    during = scene.slack.status(*status)
    await scene.finish("Done.")
    await scene.play(scene.is_sent)

    assert during == "thinking"
    await scene.until(lambda: scene.slack.status(*status) == "")


async def test_what_waits_for_a_person_does_not_look_as_if_it_were_worked_on(scene: Scene) -> None:
    post = await scene.begin()
    await scene.until(lambda: scene.shown())
    waiting = scene.content("waiting", "May I?", note="Parked until the question is answered.")
    scene.outbox.progress(post, scene.target, lambda: waiting)

    status = (scene.app, scene.channel, scene.thread)
    await scene.play(lambda: scene.slack.status(*status) == "suspended")

    assert "Waiting for an answer" in str(scene.shown()[0].stream)
    said = len(scene.statuses())
    await scene.pass_minutes(10)
    assert len(scene.statuses()) == said
    assert scene.slack.status(*status) == "suspended"
    assert scene.slack.reds == []


async def test_an_answer_does_not_wait_until_a_stream_may_be_begun(scene: Scene) -> None:
    scene.slack.fail("chat.startStream", status=429, retry_after=60)
    began = scene.clock.now()
    await scene.begin()
    await scene.finish("Here at once.")

    await scene.play(scene.is_sent)

    assert "Here at once." in scene.told()[-1]
    assert scene.clock.now() - began < 10


async def test_a_slow_status_does_not_outlast_the_work(scene: Scene) -> None:
    status = (scene.app, scene.channel, scene.thread)
    method = "agents.sessions.setStatus"
    scene.slack.stall(method)
    await scene.begin()
    await scene.until(lambda: scene.slack.stalls[method].waiting)
    await scene.finish("Done at once.")
    await scene.play(scene.is_sent)
    scene.slack.go_on(method)

    await scene.until(lambda: len([c for c in scene.slack.calls if c.method == method]) == 2)

    assert scene.slack.status(*status) == "active"


async def test_a_status_that_slack_does_not_take_now_ends_later(scene: Scene) -> None:
    status = (scene.app, scene.channel, scene.thread)
    await scene.begin()
    await scene.until(lambda: scene.slack.status(*status) == "processing")
    scene.slack.fail("agents.sessions.setStatus", status=429, retry_after=30, times=1)
    await scene.finish("Done.")

    await scene.play(lambda: scene.slack.status(*status) == "active", step=5)

    assert len(scene.statuses()) == 1


async def test_a_status_that_slack_refuses_once_ends_all_the_same(scene: Scene) -> None:
    status = (scene.app, scene.channel, scene.thread)
    scene.slack.fail("agents.sessions.setStatus", error="something_odd", times=2)
    await scene.begin()
    await scene.until(lambda: scene.slack.status(*status) == "thinking")
    await scene.pass_minutes(5)
    await scene.finish("Done.")
    await scene.play(scene.is_sent)

    await scene.play(lambda: scene.slack.status(*status) == "active", step=5)


async def test_the_progress_is_reduced_also_where_slack_refuses_its_cards(scene: Scene) -> None:
    post = await scene.begin()
    await scene.until(lambda: scene.shown())
    scene.show(post, "Looking.", PLAN, TOOL)
    await scene.pass_minutes(5)
    scene.slack.fail("chat.update", error="invalid_blocks", times=1)
    await scene.finish("Looking. Mended.", PLAN, TOOL)
    await scene.play(scene.is_sent)

    assert scene.shown()[0].words == "Done\n✓ read\n✓ write\nThe answer is below."


async def test_half_an_hour_of_limits_delays_the_answer_and_loses_nothing(scene: Scene) -> None:
    scene.slack.fail("*", status=429, retry_after=60, seconds=1800)
    await scene.begin()
    await scene.finish("It took a while.")

    await scene.play(scene.is_sent, step=20)

    [answer] = scene.shown()
    assert "It took a while." in answer.words
    refused = [call for call in scene.slack.calls if call.answer.get("error") == "ratelimited"]
    assert 20 <= len(refused) <= 70


@pytest.mark.parametrize("characters", [40_000, 100_000])
async def test_a_long_answer_loses_no_character(scene: Scene, characters: int) -> None:
    lines = "".join(f"line {number:06d}\n" for number in range(characters // 12))
    text = f"```python\n{lines}```\nThe end."
    post = await scene.begin()
    await scene.until(lambda: scene.shown())
    scene.show(post, text[:15_000])
    await scene.play(lambda: len(scene.shown()) == 2)
    await scene.finish(text)

    await scene.play(scene.is_sent)

    with scene.slack.changed:
        files = [file for each in scene.shown() for file in each.files]
        tail = "".join(scene.slack.files[file].content.decode() for file in files)
        shown = "".join(f"{each.words}\n" for each in scene.shown() if not each.files)
    found = [line for line in f"{shown}{tail}".splitlines() if line.startswith("line ")]
    assert found == lines.splitlines()
    assert len(files) == (characters > 60_000)
    assert all(each.words.count("```") % 2 == 0 for each in scene.shown() if not each.files)
    assert too_often(scene.slack) == []


@pytest.mark.parametrize("method", ["chat.startStream", "chat.appendStream", "chat.stopStream"])
async def test_a_call_without_an_answer_is_not_repeated(scene: Scene, method: str) -> None:
    scene.slack.lose_answers[method] = 1
    post = await scene.begin()
    await scene.play(lambda: scene.stores.posts.post(1).remote_id)  # type: ignore[union-attr]  # it is there
    scene.show(post, "One. ")
    await scene.play(lambda: "One." in scene.shown()[0].words)
    scene.show(post, "One. Two. ")
    await scene.finish("One. Two. Three.")

    await scene.play(scene.is_sent)

    shown = "\n".join(each.words for each in scene.shown())
    assert shown.count("One. Two. Three.") == 1
    assert shown.count("One.") == 1
    assert len([words for words in scene.told() if "Three." in words]) == 1


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("chat.appendStream", "streaming_mode_mismatch"),
        ("chat.stopStream", "invalid_chunks"),
        ("chat.update", "invalid_blocks"),
        ("chat.postMessage", "invalid_blocks"),
    ],
)
async def test_an_answer_that_is_not_taken_as_it_is_arrives_all_the_same(
    scene: Scene, method: str, error: str
) -> None:
    scene.app.streams = "Stream" in method
    post = await scene.begin()
    await scene.until(lambda: scene.shown())
    scene.slack.fail(method, error=error, times=1)
    scene.show(post, "One. ")
    await scene.play(lambda: "One." in scene.shown()[0].words)
    await scene.finish("One. | Two | *Three* |")

    await scene.play(scene.is_sent)

    shown = "\n".join(each.words for each in scene.shown())
    assert shown.count("One. | Two | *Three* |") == 1
    assert len([words for words in scene.told() if "Three" in words]) == 1


async def test_a_long_answer_takes_more_messages_where_files_are_not_allowed(scene: Scene) -> None:
    scene.app.scopes -= {"files:write"}
    await scene.begin()
    await scene.until(lambda: scene.shown())
    await scene.finish("words " * 12_000)

    await scene.play(scene.is_sent)

    with scene.slack.changed:
        assert " ".join(each.words for each in scene.shown()).count("words") == 12_000


async def test_a_message_that_somebody_deleted_is_written_anew(scene: Scene) -> None:
    await scene.begin()
    await scene.until(lambda: scene.shown())
    scene.slack.delete(scene.shown()[0].ts)
    await scene.finish("Here it is again.")

    await scene.play(scene.is_sent)

    assert "Here it is again." in scene.shown()[-1].words
