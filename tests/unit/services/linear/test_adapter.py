"""The adapter against the simulated Linear, on a clock that the test drives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from app.config.process import Sealer
from app.core.outbox import Outbox
from app.errors import PostDelayed, PostError, PostRejected, ServiceRefused, SpeakerUnknown
from app.model.inbound import Begun, Chore, Delivery, Heard
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import Fact, MadeFile, NewPost, PostContent, PostSend, ToolLine
from app.model.types import Speaker
from app.model.updates import AskOption, PlanStep
from app.services.common.webhooks import DeliveryStale
from app.services.linear.adapter import LinearAdapter
from app.services.linear.auth import Grants
from app.services.linear.settings import LinearCredentials
from app.store.posts import finish_post, insert_post
from app.vault import Vault
from sim.linear import Anchor, App, Linear, LinearSession
from sim.linear.workspace import STALE_SECONDS
from tests.support.base import make_base
from tests.support.clock import ManualClock
from tests.support.memory import open_stores

pytestmark = pytest.mark.anyio

PLACE = PlaceKey("linear", "any")
STARTING = PostContent(kind="turn", state="starting")
WORKING = PostContent(kind="turn", state="working")
DONE = PostContent(kind="turn", state="done", text="It is done.")


def settings(app: App, agent_id: str | None = None) -> LinearCredentials:
    token = next(iter(app.tokens))
    return LinearCredentials(
        webhook_secret=SecretStr(app.webhook_secret),
        access_token=SecretStr(token),
        agent_id=agent_id,
    )


def minting(app: App, secret: str = "") -> LinearCredentials:
    return LinearCredentials(
        webhook_secret=SecretStr(app.webhook_secret),
        client_id=app.client_id,
        client_secret=SecretStr(secret or app.client_secret),
    )


@dataclass
class Scene:
    """One agent, one issue, one session, and time that stands still."""

    linear: Linear
    clock: ManualClock
    app: App
    session: LinearSession
    adapter: LinearAdapter
    vault: Vault
    taken: list[Delivery] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ann = self.linear.person("Ann")

    @property
    def target(self) -> SessionKey:
        return SessionKey("linear", self.session.id, "demo")

    def post(self, op: str, content: PostContent, marker: str = "ab-1") -> PostSend:
        return PostSend(op, self.target, marker, content)  # type: ignore[arg-type]  # test data

    async def send(self, op: str, content: PostContent, marker: str = "ab-1") -> None:
        await self.adapter.send(self.post(op, content, marker))

    async def take(self, delivery: Delivery) -> None:
        self.taken.append(delivery)

    def another(
        self, credentials: LinearCredentials | None = None, **options: Any
    ) -> LinearAdapter:
        """Make a further adapter of the same app, with something set otherwise."""
        return LinearAdapter(
            "demo",
            credentials or settings(self.app),
            api_url=self.linear.url,
            clock=self.clock,
            vault=self.vault,
            **options,
        )

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Let the adapter listen, once it has looked for what it missed."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.adapter.listen(self.take))
            await self.clock.asleep()
            await self.look()
            yield
            task.cancel()

    async def look(self, since: float = 0.0) -> None:
        """Take what Linear shows since a time."""
        for source in await self.adapter.sources():
            async for delivery in source.find(since):
                await self.take(delivery)

    async def minutes(self, number: int, watch: Callable[[], None] = lambda: None) -> None:
        """Let time pass, but never while somebody is on the line."""
        for _ in range(number):
            await self.clock.asleep()
            await self.clock.advance(60.0)
            watch()

    def said(self) -> list[str]:
        return [activity.body for activity in self.session.activities]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def linear(clock: ManualClock) -> Iterator[Linear]:
    with Linear(clock.now) as linear:
        yield linear


@pytest.fixture
async def scene(linear: Linear, clock: ManualClock) -> AsyncIterator[Scene]:
    app = linear.agent("demo")
    issue = linear.issue("Do this", "say hello")
    session = linear.delegate(issue, app, linear.person("Bob"))
    vault = Vault()
    adapter = LinearAdapter("demo", settings(app), api_url=linear.url, clock=clock, vault=vault)
    yield Scene(linear, clock, app, session, adapter, vault)
    await adapter.close()


@pytest.mark.parametrize("code", ["INPUT_ERROR", "INTERNAL_SERVER_ERROR"])
async def test_what_is_sent_twice_is_there_once_and_is_found(scene: Scene, code: str) -> None:
    scene.linear.workspace.duplicate_code = code
    for _ in range(2):
        await scene.send("create", STARTING)
        await scene.send("finish", DONE)

    found = await scene.adapter.find(scene.target, "ab-1")

    assert scene.said() == ["On it.", "It is done."]
    assert found is not None
    assert found.remote_id == scene.session.activities[0].id


async def test_an_answer_that_is_too_long_for_linear_arrives_shortened_and_once(
    scene: Scene,
) -> None:
    scene.linear.workspace.longest = 10_000
    for _ in range(2):
        await scene.send("finish", replace(DONE, text="x" * 60_000))

    assert scene.session.response.startswith("x" * 8_000)
    assert scene.session.response.endswith("more characters in the transcript]")


async def test_the_end_of_a_turn_of_an_earlier_run_is_only_its_answer(scene: Scene) -> None:
    tools = (ToolLine("1", "app.py", "completed", "read"),)

    await scene.send("finish", replace(DONE, tools=tools))

    assert [activity.type for activity in scene.session.activities] == ["response"]


async def test_a_plan_that_linear_does_not_want_never_costs_the_answer(scene: Scene) -> None:
    scene.linear.forbidden = {"agentSessionUpdate"}
    await scene.send("create", STARTING)

    await scene.send("finish", replace(DONE, plan=(PlanStep("look", "completed"),)))

    assert scene.session.response == "It is done."
    assert scene.session.plan == []


async def test_no_sign_of_life_comes_after_the_last_word(scene: Scene) -> None:
    await scene.send("create", STARTING)
    async with scene.listening():
        await scene.minutes(19)
        await scene.clock.asleep()
        async with asyncio.TaskGroup() as group:
            group.create_task(scene.send("finish", DONE))
            await asyncio.sleep(0)  # the answer is on the line when the sign of life is due
            await scene.clock.advance(60.0)
        await scene.clock.asleep()

    assert scene.said() == ["On it.", "It is done."]


async def test_a_session_that_is_gone_can_never_be_posted_to(scene: Scene) -> None:
    del scene.linear.workspace.sessions[scene.session.id]

    with pytest.raises(PostRejected):
        await scene.send("create", STARTING)


async def test_a_silent_agent_shows_signs_of_life_long_before_linear_calls_it_stale(
    scene: Scene,
) -> None:
    await scene.send("create", STARTING)
    statuses: set[str] = set()
    async with scene.listening():
        await scene.minutes(90, lambda: statuses.add(scene.linear.workspace.status(scene.session)))

    assert statuses == {"active"}
    assert scene.said() == ["On it.", *["Still working on this."] * 4]
    assert all(activity.ephemeral for activity in scene.session.activities)


async def test_nothing_is_said_after_the_answer(scene: Scene) -> None:
    await scene.send("create", STARTING)
    await scene.send("finish", DONE)
    async with scene.listening():
        await scene.minutes(60)

    assert scene.said() == ["On it.", "It is done."]


async def test_an_open_question_stays_the_last_word_until_it_is_answered(scene: Scene) -> None:
    ask = PostContent(
        kind="ask", state="open", text="May I?", options=(AskOption("y", "Yes", "allow_once"),)
    )
    await scene.send("create", STARTING)
    await scene.send("create", ask, "ab-2")
    async with scene.listening():
        await scene.minutes(60)
        await scene.send("replace", replace(WORKING, text="Meanwhile"))
        assert scene.session.status == "awaitingInput"

        await scene.send("finish", replace(ask, state="answered", note="Ann: Yes"), "ab-2")
        await scene.send("replace", replace(WORKING, text="Going on"))

    assert scene.said() == ["On it.", "```\nMay I?\n```", "`Ann: Yes`", "Going on"]


async def test_two_hours_of_work_cost_tens_of_calls(scene: Scene) -> None:
    await scene.send("create", STARTING)
    delayed = 0
    for second in range(0, 7200, 5):
        tools = tuple(
            ToolLine(str(number), f"file {number}", "completed", "read")
            for number in range(max(0, second - 20), second)
        )
        try:
            await scene.send("replace", replace(WORKING, text=f"at {second}", tools=tools))
        except PostDelayed:
            delayed += 1
        await scene.clock.advance(5.0)
    await scene.send("finish", DONE)

    assert delayed > 1000
    assert len(scene.linear.calls) < 100


async def test_half_an_hour_of_rate_limits_neither_loses_the_answer_nor_looks_dead(
    scene: Scene, tmp_path: Path
) -> None:
    linear, clock = scene.linear, scene.clock
    with open_stores(tmp_path, clock) as (database, stores):
        outbox = Outbox(make_base(stores, clock, {"linear:demo": scene.adapter}, scene.vault))
        new = NewPost("p", scene.target, STARTING)
        post = await database.writer.run(lambda c: insert_post(c, new, 0.0))
        outbox.send(post)
        await asyncio.to_thread(linear.wait, lambda: scene.said() == ["On it."])
        linear.limited_until = clock.now() + STALE_SECONDS
        closing = await database.writer.run(lambda c: finish_post(c, "p", DONE))
        assert closing == post
        outbox.send(post)
        statuses: set[str] = set()
        await scene.minutes(29, lambda: statuses.add(linear.workspace.status(scene.session)))
        await clock.asleep()
        await clock.advance(60.0)

        await asyncio.to_thread(linear.wait, lambda: scene.session.status == "complete")
        await outbox.close(grace=5)

    assert statuses == {"active"}
    assert scene.session.response == "It is done."
    assert not linear.workspace.is_unresponsive(scene.session)


async def test_a_delivery_that_linear_repeats_too_late_is_refused_and_looked_for(
    scene: Scene,
) -> None:
    scene.linear.reply(scene.session, scene.ann, "hello?")
    async with scene.listening():
        taken = len(scene.taken)
        late = scene.linear.reply(scene.session, scene.ann, "still there?")
        missed = scene.linear.hooks.sent[-1]
        headers = {name.lower().encode(): v.encode() for name, v in missed.headers.items()}
        await scene.clock.advance(61.0)

        with pytest.raises(DeliveryStale):
            scene.adapter.verify(headers, missed.body, scene.clock.now())
        [gap] = scene.adapter.gaps
        await scene.look(gap.began - 1)

    assert gap.cause == "hook"
    found = [scene.adapter.parse(delivery) for delivery in scene.taken[taken:]]
    by_webhook = scene.adapter.parse(replace(scene.taken[0], body=missed.body))
    assert isinstance(by_webhook, Heard)
    assert [each.message_id for each in found if isinstance(each, Heard)] == [
        scene.session.id,
        scene.session.activities[0].id,
        late.id,
    ]
    assert isinstance(found[-1], Heard)
    assert replace(found[-1], title="", link="") == replace(by_webhook, title="", link="")


async def test_sessions_of_others_and_old_ones_are_not_looked_at(scene: Scene) -> None:
    other = scene.linear.agent("other")
    await scene.clock.advance(7 * 24 * 3600.0)
    scene.linear.delegate(scene.linear.issue("Theirs"), other, scene.ann)
    mine = scene.linear.delegate(scene.linear.issue("Mine"), scene.app, scene.ann)
    async with scene.listening():
        pass

    assert [delivery.delivery_id for delivery in scene.taken] == [f"missed:{mine.id}"]


async def found(scene: Scene) -> list[Heard]:
    """Look for what was missed, as a bridge does that starts now."""
    async with scene.listening():
        pass
    heard = [scene.adapter.parse(delivery) for delivery in scene.taken]
    return [each for each in heard if isinstance(each, Heard)]


async def test_the_latest_of_many_replies_are_found_and_in_their_order(scene: Scene) -> None:
    for number in range(40):
        scene.linear.reply(scene.session, scene.ann, f"reply {number}")
        await scene.clock.advance(1.0)

    missed = await found(scene)

    assert [each.text for each in missed[1:]] == [f"reply {number}" for number in range(10, 40)]


async def test_what_is_older_than_the_memory_of_the_bridge_is_not_taken_for_missed(
    scene: Scene,
) -> None:
    scene.linear.reply(scene.session, scene.ann, "long ago")
    await scene.clock.advance(31 * 24 * 3600.0)  # by now it is forgotten that this was answered
    new = scene.linear.reply(scene.session, scene.ann, "and today")

    missed = await found(scene)

    assert [each.message_id for each in missed] == [new.id]


async def test_a_mention_in_a_thread_is_found_as_it_was_told(scene: Scene) -> None:
    issue = scene.linear.issue("The door", "It does not close.")
    thread = scene.linear.comment(issue, scene.linear.person("Bob"), "The hinge is rusty.")
    scene.linear.mention(issue, scene.app, scene.ann, "why?", under=thread)
    body = scene.linear.hooks.sent[-1].body

    told = scene.adapter.parse(Delivery("linear:demo", "d1", None, {}, body, 1.0))
    missed = (await found(scene))[-1]

    assert isinstance(told, Heard)
    assert missed.text == told.text == "@demo why?"
    assert (missed.message_id, missed.speaker) == (told.message_id, told.speaker)
    assert "The hinge is rusty." in missed.context


async def test_a_linear_that_is_down_is_tried_until_it_is_back(scene: Scene) -> None:
    scene.linear.down = True
    async with asyncio.TaskGroup() as group:
        task = group.create_task(scene.adapter.listen(scene.take))
        await scene.clock.asleep()
        assert "503" in scene.adapter.trouble
        scene.linear.down = False
        await scene.clock.advance(60.0)
        await scene.look()
        task.cancel()

    assert scene.adapter.trouble == ""
    assert len(scene.taken) == 1


async def refused(listen: Awaitable[None]) -> str:
    with pytest.raises(ServiceRefused) as error:
        await listen
    return str(error.value)


async def test_a_token_that_is_taken_away_for_a_while_stops_no_look_for_what_was_missed(
    scene: Scene,
) -> None:
    async with scene.listening():
        taken, tokens = len(scene.taken), dict(scene.app.tokens)
        missed = scene.linear.reply(scene.session, scene.ann, "still there?")
        sent = scene.linear.hooks.sent[-1]
        headers = {name.lower().encode(): v.encode() for name, v in sent.headers.items()}
        await scene.clock.advance(61.0)
        scene.app.tokens.clear()
        with pytest.raises(DeliveryStale):
            scene.adapter.verify(headers, sent.body, scene.clock.now())
        with pytest.raises((ServiceRefused, PostError)):
            await scene.look()
        assert "LINEAR_ACCESS_TOKEN" in scene.adapter.trouble

        scene.app.tokens.update(tokens)
        await scene.clock.advance(60.0)
        await scene.look()

    assert scene.adapter.trouble == ""
    assert scene.taken[taken + 1].delivery_id == f"missed:{missed.id}"


async def test_a_token_that_somebody_allows_at_linear_is_taken_without_a_restart(
    scene: Scene, tmp_path: Path
) -> None:
    with open_stores(tmp_path, scene.clock) as (_, stores):
        grants = Grants("linear:demo", stores.sealed, Sealer(SecretStr("k" * 40)))
        adapter = scene.another(minting(scene.app), grants=grants)
        scene.app.credentials = False
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(adapter.listen(scene.take))
            await scene.clock.asleep()
            assert "client credentials" in adapter.trouble
            scene.app.credentials = True
            await scene.clock.advance(300.0)
            await adapter.prepare()
            listening.cancel()
        await adapter.close()

    assert adapter.trouble == ""


async def test_wrong_credentials_are_told_with_their_remedy(scene: Scene) -> None:
    expired = settings(scene.app)
    scene.app.tokens.clear()
    cases = {
        "LINEAR_ACCESS_TOKEN": expired,
        "LINEAR_CLIENT_SECRET": minting(scene.app, "wrong"),
    }
    for remedy, credentials in cases.items():
        adapter = scene.another(credentials)
        assert remedy in await refused(adapter.listen(scene.take))
        await adapter.close()


async def test_a_token_of_somebody_else_is_refused(scene: Scene) -> None:
    wrong = scene.another(settings(scene.app, agent_id="somebody-else"))
    assert "LINEAR_AGENT_ID" in await refused(wrong.listen(scene.take))
    await wrong.close()

    scene.app.user.app = False
    assert "actor=app" in await refused(scene.adapter.listen(scene.take))


async def test_a_minted_token_is_kept_secret_and_renewed_before_it_ends(scene: Scene) -> None:
    adapter = scene.another(minting(scene.app))
    await adapter.send(scene.post("create", STARTING))
    minted = list(scene.app.tokens)[-1]
    await scene.clock.advance(30 * 24 * 3600.0 - 1800.0)
    await adapter.send(scene.post("finish", DONE))
    await adapter.close()

    assert minted not in scene.vault.redact(f"the token is {minted}")
    assert [call.field for call in scene.linear.calls].count("token") == 2
    assert scene.session.response == "It is done."


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, None),
        ({"guest": True}, "full members"),
        ({"active": False}, "full"),
        ({"app": True}, "apps"),
    ],
)
async def test_only_full_members_may(
    scene: Scene, change: dict[str, bool], words: str | None
) -> None:
    for name, value in change.items():
        setattr(scene.ann, name, value)

    why = await scene.adapter.refusal(Speaker(scene.ann.id, "Ann"), PLACE)

    assert (why is None) if words is None else (why is not None and words in why)


async def test_strangers_may_not_and_whoever_left_is_out_after_minutes(scene: Scene) -> None:
    ann = Speaker(scene.ann.id, "Ann")
    assert await scene.adapter.refusal(Speaker("a-stranger", "Eve"), PLACE) is not None
    assert await scene.adapter.refusal(ann, PLACE) is None
    scene.ann.active = False

    await scene.clock.advance(301.0)

    assert await scene.adapter.refusal(ann, PLACE) is not None


async def test_who_is_a_member_counts_for_an_hour_while_linear_cannot_be_asked(
    scene: Scene,
) -> None:
    ann, bob = Speaker(scene.ann.id, "Ann"), Speaker(scene.linear.person("Bob").id, "Bob")
    assert await scene.adapter.refusal(ann, PLACE) is None
    await scene.clock.advance(301.0)
    scene.linear.down = True

    assert await scene.adapter.refusal(ann, PLACE) is None
    with pytest.raises(SpeakerUnknown, match="503"):
        await scene.adapter.refusal(bob, PLACE)
    await scene.clock.advance(3600.0)
    with pytest.raises(SpeakerUnknown, match="503"):
        await scene.adapter.refusal(ann, PLACE)


async def test_bots_are_heard_by_their_id_and_automations_by_theirs(scene: Scene) -> None:
    scene.linear.delegate(scene.session.issue, scene.app, None)
    delivery = Delivery("linear:demo", "d1", None, {}, scene.linear.hooks.sent[-1].body, 1.0)
    listed = scene.another(bots=("automation",))

    unlisted = scene.adapter.parse(delivery)
    heard = listed.parse(delivery)

    assert isinstance(unlisted, Heard)
    assert "ALLOWED_BOTS" in (await scene.adapter.refusal(unlisted.speaker, PLACE) or "")
    assert isinstance(heard, Heard)
    assert heard.speaker == Speaker("automation", "an automation", kind="bot")


async def test_a_conversation_keeps_its_place_when_its_issue_moves_to_another_team(
    scene: Scene,
) -> None:
    scene.linear.reply(scene.session, scene.ann, "hello")
    body = scene.linear.hooks.sent[-1].body.replace(b"ENG-1", b"OPS-7")
    home = PlaceKey("linear", "ENG-1")
    adapter = scene.another(home=lambda key: home if key == scene.target else None)

    heard = adapter.parse(Delivery("linear:demo", "d1", None, {}, body, 1.0))

    assert isinstance(heard, Heard)
    assert heard.place == home


async def test_files_are_fetched_once_and_a_note_stands_for_those_that_are_gone(
    scene: Scene, tmp_path: Path
) -> None:
    adapter = scene.another(uploads=tmp_path)
    words = scene.linear.upload("a.png", b"a picture") + scene.linear.upload("b.png", b"gone")
    scene.linear.reply(scene.session, scene.ann, words)
    body = scene.linear.hooks.sent[-1].body
    heard = adapter.parse(Delivery("linear:demo", "d1", None, {}, body, 1.0))
    assert isinstance(heard, Heard)
    there, gone = heard.files
    scene.linear.uploads.popitem()

    first = await adapter.fetch(there)
    scene.linear.uploads.clear()
    again = await adapter.fetch(there)
    note = await adapter.fetch(gone)
    await adapter.close()

    assert first == again == there
    assert (tmp_path / there.url).read_bytes() == b"a picture"
    assert "b.png was attached" in (tmp_path / note.url).read_text()
    assert note.media_type == "text/plain"


async def test_what_is_attached_to_the_issue_is_told_as_data_and_its_files_come_along(
    scene: Scene,
) -> None:
    assert await scene.adapter.earlier(scene.target, "any") == ()
    upload = scene.linear.upload("spec", b"%PDF").partition("(")[2].removesuffix(")")
    scene.session.issue.attachments = {"Design": "https://figma.example/1", "The [spec]": upload}

    (told,) = await scene.adapter.earlier(scene.target, "any")

    assert told.speaker.kind == "bot"
    name = scene.session.issue.identifier
    assert told.text == (
        f"Attached to {name}:\n- Design: https://figma.example/1\n- The [spec]: {upload}"
    )
    (file,) = told.files
    assert file.name == "The_spec"


async def test_what_an_agent_made_goes_up_once_and_is_named_in_the_one_response(
    scene: Scene, tmp_path: Path
) -> None:
    adapter = scene.another(uploads=tmp_path)
    for name, content in (("plot.png", b"a plot"), ("report.md", b"a report")):
        (tmp_path / "0a1b").mkdir(exist_ok=True)
        (tmp_path / "0a1b" / name).write_bytes(content)
    made = (
        MadeFile("plot.png", "image/png", "0a1b/plot.png", 6),
        MadeFile("report.md", "text/markdown", "0a1b/report.md", 8, "https://page.example/r"),
        MadeFile("gone.md", "text/markdown", "0a1b/gone.md", 8),
    )
    done = replace(DONE, files=made)
    scene.linear.lose_answers = 1

    with pytest.raises(PostDelayed):
        await adapter.send(scene.post("finish", done))
    await adapter.send(scene.post("finish", done))
    await adapter.close()

    addresses = {
        content: f"https://uploads.linear.app/{path}"
        for path, content in scene.linear.uploads.items()
    }
    assert set(addresses) == {b"a plot", b"a report"}
    assert scene.session.response == "\n".join(
        (
            "It is done.",
            "",
            f"![plot.png]({addresses[b'a plot']})",
            f"[report.md]({addresses[b'a report']}) (8 bytes)",
            "`gone.md` (8 bytes) is on the machine that runs the bridge.",
        )
    )
    assert len(scene.session.of_type("response")) == 1


async def test_what_linear_refuses_is_linked_where_the_page_gives_it_out(
    scene: Scene, tmp_path: Path
) -> None:
    (tmp_path / "0a1b").mkdir()
    (tmp_path / "0a1b" / "a.md").write_text("x")
    scene.linear.forbidden.add("fileUpload")
    file = MadeFile("a.md", "text/markdown", "0a1b/a.md", 1, "https://page.example/a.md")

    await scene.send("finish", replace(DONE, files=(file,)))

    assert "[a.md](https://page.example/a.md) (1 byte)" in scene.session.response


async def test_the_answer_does_not_wait_for_a_file_that_never_gets_there(
    scene: Scene, tmp_path: Path
) -> None:
    adapter = scene.another(uploads=tmp_path)
    (tmp_path / "0a1b").mkdir()
    (tmp_path / "0a1b" / "a.md").write_text("x")
    file = MadeFile("a.md", "text/markdown", "0a1b/a.md", 1, "https://page.example/a.md")
    scene.linear.lose_uploads = 100

    for _ in range(2):
        with pytest.raises(PostDelayed):
            await adapter.send(scene.post("finish", replace(DONE, files=(file,))))
    await adapter.send(scene.post("finish", replace(DONE, files=(file,))))
    await adapter.close()

    assert "[a.md](https://page.example/a.md) (1 byte)" in scene.session.response


async def test_a_file_that_many_want_at_once_is_there_for_all(scene: Scene, tmp_path: Path) -> None:
    words = scene.linear.upload("a.png", b"a picture" * 100_000)
    scene.linear.reply(scene.session, scene.ann, words)
    body = scene.linear.hooks.sent[-1].body
    adapter = scene.another(uploads=tmp_path)
    heard = adapter.parse(Delivery("linear:demo", "d1", None, {}, body, 1.0))
    assert isinstance(heard, Heard)
    (file,) = heard.files

    fetched = await asyncio.gather(*(adapter.fetch(file) for _ in range(20)))
    await adapter.close()

    assert fetched == [file] * 20
    assert [path.name for path in (tmp_path / file.url).parent.iterdir()] == ["a.png"]


@pytest.mark.parametrize("where", ["completed", "canceled", "duplicate"])
async def test_an_issue_that_people_moved_or_automations_gave_is_left_alone(
    scene: Scene, where: str
) -> None:
    begin = replace(STARTING, message_id=scene.session.id)
    scene.linear.move(scene.session.issue, where)
    await scene.send("create", begin, "ab-1")
    await scene.send("finish", DONE, "ab-1")
    scene.linear.move(scene.session.issue, "backlog")
    await scene.send("create", replace(begin, asker="automation"), "ab-2")
    await scene.send("finish", DONE, "ab-2")

    assert scene.session.issue.state.type == "backlog"
    assert scene.linear.fields().count("agentSession") == 2  # it has looked
    assert "issueUpdate" not in scene.linear.fields()


async def test_the_issue_moves_while_the_agent_starts_and_before_anything_else_is_said(
    scene: Scene,
) -> None:
    await scene.send("create", replace(STARTING, message_id=scene.session.id))
    told = scene.linear.fields()
    await scene.send("finish", DONE)

    assert told == ["agentActivityCreate"]
    assert scene.linear.fields() == [
        "agentActivityCreate",
        "agentSession",
        "issueUpdate",
        "agentActivityCreate",
    ]
    assert scene.session.issue.state.type == "started"


async def test_a_pull_request_makes_the_agent_the_delegate_where_nobody_is(scene: Scene) -> None:
    issue = scene.session.issue
    issue.delegate = None
    facts = (Fact("PR 7", "https://github.example.com/o/r/pull/7"),)

    await scene.send("finish", replace(DONE, facts=facts))

    assert issue.delegate is scene.app.user
    assert issue.state.type == "started"
    assert scene.session.urls == [{"label": "PR 7", "url": facts[0].url}]


async def test_links_of_an_earlier_turn_do_not_stand_there_twice(scene: Scene) -> None:
    page, pull = Fact("Details", "https://b.example.com/t/1"), Fact("PR", "https://g.example.com/1")
    await scene.send("finish", replace(DONE, facts=(page,)))
    await scene.send("finish", replace(DONE, facts=(page, pull)), "ab-2")
    await scene.send("finish", replace(DONE, facts=(page, pull)), "ab-3")

    assert [link["url"] for link in scene.session.urls] == [page.url, pull.url]
    assert scene.linear.fields().count("agentSessionUpdate") == 2


async def test_links_are_shown_although_linear_does_not_tell_which_it_has(scene: Scene) -> None:
    scene.linear.forbidden = {"agentSession"}
    await scene.send("finish", replace(DONE, facts=(Fact("Details", "https://b.example.com"),)))

    assert [link["label"] for link in scene.session.urls] == ["Details"]


async def test_manners_are_never_worth_a_failure(scene: Scene) -> None:
    scene.linear.workspace.states.clear()

    await scene.send("create", replace(STARTING, message_id=scene.session.id))

    assert scene.said() == ["On it."]


async def test_what_is_said_to_an_issue_without_a_session_has_no_reader(scene: Scene) -> None:
    target = SessionKey("linear", "issue:ENG-1", "demo")
    notice = PostContent(kind="notice", note="Nothing is running here.")

    sent = await scene.adapter.send(PostSend("create", target, "ab-1", notice))

    assert sent.remote_id
    assert scene.linear.calls == []


async def test_a_change_of_access_is_heard_and_what_was_cached_is_forgotten(scene: Scene) -> None:
    gus = scene.linear.person("Gus", guest=True)
    asked = Speaker(gus.id, "Gus")
    async with scene.listening():
        assert await scene.adapter.refusal(asked, PLACE) is not None
        gus.guest = False
        assert await scene.adapter.refusal(asked, PLACE) is not None

        delivery = scene.linear.let_in(scene.app)
        headers = {name.lower().encode(): text.encode() for name, text in delivery.headers.items()}
        verified = scene.adapter.verify(headers, delivery.body, scene.clock.now())

        chore = scene.adapter.parse(verified)
        assert await scene.adapter.refusal(asked, PLACE) is not None, "parsing changes nothing"

        assert isinstance(chore, Chore)
        await scene.adapter.do_chore(chore)
        assert await scene.adapter.refusal(asked, PLACE) is None

    # A team that it can see now may have called it before.
    [gap] = scene.adapter.gaps
    assert gap.cause == "access"


async def test_a_change_that_linear_does_not_carry_out_is_made_again(scene: Scene) -> None:
    scene.linear.undone = 1
    with pytest.raises(PostDelayed):
        await scene.send("finish", DONE)
    await scene.send("finish", DONE)

    assert scene.session.response == "It is done."


async def test_a_file_that_linear_does_not_take_keeps_its_link_to_the_page(
    scene: Scene, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    made = MadeFile("notes.txt", "text/plain", "notes.txt", 5, "https://bridge.example.com/notes")
    adapter = scene.another(uploads=tmp_path)
    scene.linear.undone = 1
    await adapter.send(scene.post("finish", replace(DONE, files=(made,))))
    await adapter.close()

    assert "(https://bridge.example.com/notes)" in scene.session.response


@pytest.mark.parametrize(
    ("anchor", "words"),
    [
        (Anchor("pullRequest", "Make it blue"), "Handle this pull request."),
        (Anchor("document", "Colours", "Blue is best."), "Handle this document."),
        (Anchor("project", "Paint", "All of it."), "Handle this project."),
    ],
)
async def test_a_session_about_something_else_than_an_issue_gets_its_text(
    scene: Scene, anchor: Anchor, words: str
) -> None:
    session = scene.linear.mention_on(anchor, scene.app, scene.ann)
    async with scene.listening():
        pass
    (delivery,) = (each for each in scene.taken if session.id.encode() in each.body)
    heard = scene.adapter.parse(delivery)
    assert isinstance(heard, Heard)
    gathered = await scene.adapter.gather(heard)

    assert gathered.text.startswith(words)
    assert anchor.title in gathered.context
    assert anchor.text in gathered.context
    assert gathered.link == anchor.url


async def test_work_that_goes_on_elsewhere_sends_heartbeats_until_it_ends(scene: Scene) -> None:
    adapter = scene.adapter = scene.another(proactive=True)
    issue = scene.linear.issue("Elsewhere")
    link = "https://bridge.example.com/threads/1"
    async with scene.listening():
        begun = Begun((f"see {issue.identifier}",), link)
        key = await adapter.accompany(begun)
        assert key == await adapter.accompany(begun)
        assert key is not None
        scene.session = scene.linear.workspace.sessions[key.external]

        await scene.minutes(25)
        await adapter.send(PostSend("create", key, "end", PostContent(kind="notice", note="Done.")))
        spoken = scene.said()
        await scene.minutes(25)

    assert spoken[1:] == ["Still working on this.", "Done."]
    assert scene.said() == spoken
    assert scene.session.status == "complete"
    await adapter.close()


async def test_an_issue_that_linear_does_not_know_is_left_alone(scene: Scene) -> None:
    adapter = scene.adapter = scene.another(proactive=True)
    async with scene.listening():
        assert await adapter.accompany(Begun(("UTF-8",), "https://bridge.example.com")) is None

    assert "agentSessionCreateOnIssue" not in scene.linear.fields()
    await adapter.close()
