"""One agent's presence on the simulated Slack: its line, its people, its files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from app.clock import SystemClock
from app.errors import PostDelayed, PostRejected, ServiceRefused, StoreUnavailable
from app.model.inbound import Changed, Delivery, Heard
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import MadeFile, PostContent, PostSend
from app.model.types import ActivePlace, File, Speaker
from app.model.updates import AskOption
from app.services.slack.adapter import SlackAdapter
from app.services.slack.api import bypasses_proxy, is_slack_address
from app.services.slack.text import files_of
from app.tasks import Tasks
from app.vault import vault_of
from sim.slack.model import CANVAS, SCOPES, App
from sim.slack.server import SimulatedSlack
from tests.support.slack import slack_adapter
from tests.support.variants import quick

pytestmark = pytest.mark.anyio


@dataclass
class Scene:
    """An adapter that may listen, and what it took in."""

    slack: SimulatedSlack
    app: App
    ann: str
    channel: str
    adapter: SlackAdapter
    folder: Path
    taken: list[Delivery] = field(default_factory=list)
    refusals: int = 0
    """How often the store says no before it keeps anything."""
    came: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, delivery: Delivery) -> None:
        if self.refusals:
            self.refusals -= 1
            raise StoreUnavailable("the disk is full")
        if delivery.delivery_id not in {each.delivery_id for each in self.taken}:
            self.taken.append(delivery)
        self.came.set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        tasks = Tasks("test")
        tasks.start(self.adapter.listen(self.take), name="listen")
        await self.until(lambda: self.slack.connected(self.app) == 1)
        yield
        await tasks.close()

    def heard(self) -> list[str]:
        parsed = [self.adapter.parse(delivery) for delivery in self.taken]
        return [each.text for each in parsed if isinstance(each, Heard)]

    async def until_heard(self, *texts: str) -> None:
        async with asyncio.timeout(20):
            while not set(texts) <= set(self.heard()):
                self.came.clear()
                await self.came.wait()

    def asked(self, method: str) -> int:
        """Count the calls of one method."""
        return sum(call.method == method for call in self.slack.calls)

    async def until(self, done: Callable[[], object]) -> None:
        await asyncio.to_thread(self.slack.wait, done, 20.0)


@asynccontextmanager
async def staged(
    folder: Path,
    active: Callable[[float], Awaitable[Any]] | None = None,
    ping_seconds: float = 0.2,
    **app: Any,
) -> AsyncIterator[Scene]:
    with SimulatedSlack(resend_seconds=0.3, retries=1000) as slack:
        made, ann = slack.app("claude", **app), slack.person("Ann")
        channel = slack.channel("general", [ann, made])
        adapter = slack_adapter(
            slack,
            made,
            clock=SystemClock(),
            folder=folder,
            ping_seconds=ping_seconds,
            active=active,
        )
        yield Scene(slack, made, ann, channel, adapter, folder)
        await adapter.close()


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with staged(tmp_path) as made:
        yield made


async def test_its_trouble_is_over_while_it_has_a_line(scene: Scene) -> None:
    before = scene.adapter.trouble
    async with scene.listening():
        scene.slack.say(scene.ann, scene.channel, f"<@{scene.app.user}> hi")
        await scene.until_heard("@claude hi")
        during = scene.adapter.trouble

    assert before
    assert not during
    assert scene.adapter.trouble


async def test_a_frame_is_acknowledged_only_once_it_is_kept(scene: Scene) -> None:
    scene.refusals = 2
    async with scene.listening():
        scene.slack.say(scene.ann, scene.channel, f"<@{scene.app.user}> hi")
        await scene.until_heard("@claude hi")
        await scene.until(lambda: not scene.slack.unacknowledged)

    assert scene.slack.lost == []
    assert len(scene.taken) == 2  # the mention, and the message that it came with


async def test_an_envelope_is_stored_and_acknowledged_before_anything_is_asked_of_slack(
    scene: Scene,
) -> None:
    file = scene.slack.file("a.txt", b"inside")
    async with scene.listening():
        asked = len(scene.slack.calls)
        for method in ("users.info", "conversations.replies"):
            scene.slack.stall(method, times=1000)
        thread = scene.slack.say(scene.ann, scene.channel, f"<@{scene.app.user}> hi", files=[file])
        scene.slack.say(scene.ann, scene.channel, "!second", thread=thread)
        await scene.until(lambda: len(scene.slack.acknowledged) == 3)

        assert len(scene.slack.calls) == asked
        assert [each.waiting for each in scene.slack.stalls.values()] == [0, 0]
    assert scene.heard() == ["@claude hi", "@claude hi", "!second"]


async def test_names_and_files_are_looked_up_when_a_stored_mention_is_read(scene: Scene) -> None:
    bob = scene.slack.person("Bob")
    file = scene.slack.file("a.txt", b"inside")
    async with scene.listening():
        text = f"<@{scene.app.user}> ask <@{bob}>"
        scene.slack.say(scene.ann, scene.channel, text, files=[file])
        await scene.until(lambda: len(scene.slack.acknowledged) == 2)
    mention = next(each for each in scene.taken if b"app_mention" in each.body)
    stored = scene.adapter.parse(mention)
    assert isinstance(stored, Heard)
    scene.slack.fail("conversations.replies", status=500, times=1)

    heard = await scene.adapter.gather(stored)

    assert (stored.speaker.name, stored.files) == (scene.ann, ())
    assert (heard.speaker, heard.text) == (Speaker(scene.ann, "Ann"), "@claude ask @Bob")
    assert [each.name for each in heard.files] == ["a.txt"]


async def test_a_stored_mention_is_read_as_it_is_where_slack_tells_nothing(scene: Scene) -> None:
    async with scene.listening():
        scene.slack.say(scene.ann, scene.channel, f"<@{scene.app.user}> hi")
        await scene.until(lambda: len(scene.slack.acknowledged) == 2)
    mention = next(each for each in scene.taken if b"app_mention" in each.body)
    stored = scene.adapter.parse(mention)
    assert isinstance(stored, Heard)
    scene.slack.fail("*", error="missing_scope")

    heard = await scene.adapter.gather(stored)

    assert (heard.speaker, heard.text) == (Speaker(scene.ann, scene.ann), "@claude hi")


@pytest.mark.parametrize("how", ["cut", "silence", "refresh"])
async def test_a_line_that_breaks_is_replaced_and_nothing_is_lost(scene: Scene, how: str) -> None:
    async with scene.listening():
        getattr(scene.slack, how)(scene.app)
        scene.slack.say(scene.ann, scene.channel, f"<@{scene.app.user}> after")
        await scene.until_heard("@claude after")
        await scene.until(lambda: not scene.slack.unacknowledged)

    assert scene.slack.lost == []


async def test_a_second_connection_of_the_same_app_does_no_harm(scene: Scene) -> None:
    other = slack_adapter(
        scene.slack, scene.app, clock=SystemClock(), folder=scene.folder, ping_seconds=0.2
    )
    tasks = Tasks("test")
    async with scene.listening():
        tasks.start(other.listen(scene.take), name="second")
        await scene.until(lambda: scene.slack.connected(scene.app) == 2)
        for number in range(6):
            scene.slack.say(scene.ann, scene.channel, f"<@{scene.app.user}> {number}")
        await scene.until_heard(*(f"@claude {number}" for number in range(6)))
        await scene.until(lambda: not scene.slack.unacknowledged)
        await tasks.close()
    await other.close()

    assert scene.slack.lost == []


@pytest.mark.parametrize(
    ("broken", "setting"), [("token", "SLACK_BOT_TOKEN"), ("app_token", "SLACK_APP_TOKEN")]
)
async def test_a_token_that_slack_does_not_accept_is_named_with_its_remedy(
    scene: Scene, broken: str, setting: str
) -> None:
    setattr(scene.app, broken, "xoxb-another")

    with pytest.raises(ServiceRefused, match=setting):
        await scene.adapter.listen(scene.take)


async def find(scene: Scene, since: float = 0.0) -> dict[str, list[str]]:
    """Read what Slack has since a time, by the source that shows it."""
    found: dict[str, list[str]] = {}
    for source in await scene.adapter.sources():
        async for delivery in source.find(since):
            inbound = scene.adapter.parse(delivery)
            said = inbound.text if isinstance(inbound, Heard | Changed) else None
            found.setdefault(source.name, []).append(str(said))
    return found


async def test_a_thread_in_use_shows_what_was_said_since_the_agent_was_called(
    tmp_path: Path,
) -> None:
    places: list[ActivePlace] = []

    async def active(_since: float) -> list[ActivePlace]:
        return places

    async with staged(tmp_path, active) as scene:
        thread = scene.slack.say(scene.ann, scene.channel, "root")
        scene.slack.say(scene.ann, scene.channel, "!before anybody was called", thread=thread)
        called = scene.slack.say(scene.ann, scene.channel, "come", thread=thread)
        scene.slack.say(scene.ann, scene.channel, "!missed", thread=thread)
        name = f"{scene.channel}:{thread}"
        places.append(ActivePlace(SessionKey("slack", name, "claude"), called, called, 0.0))
        scene.slack.fail("conversations.replies", status=429, retry_after=1, times=1)

        found = await find(scene)

    assert found == {name: ["!missed"]}


async def test_a_channel_shows_mentions_of_the_agent_also_in_threads_where_it_is_not(
    scene: Scene,
) -> None:
    me, direct = f"<@{scene.app.user}>", scene.slack.channel("d", [scene.ann, scene.app], "im")
    other = scene.slack.channel("not here", [scene.ann])
    thread = scene.slack.say(scene.ann, scene.channel, "talk among people")
    scene.slack.say(scene.ann, scene.channel, f"{me} first")
    scene.slack.say(scene.ann, scene.channel, "more talk", thread=thread)
    scene.slack.say(scene.ann, scene.channel, f"{me} second", thread=thread)
    scene.slack.say(scene.ann, direct, "third")
    scene.slack.say(scene.ann, other, f"{me} fourth")

    found = await find(scene)

    # The thread comes before the message that was sent after it began.
    assert found == {scene.channel: ["@claude second", "@claude first"], direct: ["third"]}


async def test_an_app_without_the_scope_to_list_channels_compares_those_it_knows(
    tmp_path: Path,
) -> None:
    places: list[ActivePlace] = []

    async def active(_since: float) -> list[ActivePlace]:
        return places

    async with staged(tmp_path, active) as scene:
        scene.app.scopes = frozenset(each for each in scene.app.scopes if ":read" not in each)
        thread = scene.slack.say(scene.ann, scene.channel, "root")
        name = f"{scene.channel}:{thread}"
        places.append(ActivePlace(SessionKey("slack", name, "claude"), thread, thread, 0.0))

        sources = await scene.adapter.sources()

    assert [each.name for each in sources] == [scene.channel, name]


@pytest.mark.parametrize(("how", "ping_seconds"), quick(1, [("cut", 60.0), ("silence", 0.2)]))
async def test_a_line_that_was_dead_leaves_a_gap(
    tmp_path: Path, how: str, ping_seconds: float
) -> None:
    async with staged(tmp_path, ping_seconds=ping_seconds) as scene, scene.listening():
        getattr(scene.slack, how)(scene.app)
        await scene.until(lambda: scene.adapter.gaps)

        [gap] = scene.adapter.gaps

    assert gap.cause == "socket"
    assert gap.began <= gap.ended


async def test_a_refreshed_line_leaves_no_gap(scene: Scene) -> None:
    async with scene.listening():
        scene.slack.refresh(scene.app)
        # Until the next line is there, the old one counts.
        await scene.until(lambda: scene.asked("apps.connections.open") == 2)
        await scene.until(lambda: scene.slack.connected(scene.app) == 1)
        scene.slack.say(scene.ann, scene.channel, f"<@{scene.app.user}> after")
        await scene.until_heard("@claude after")

        assert scene.asked("apps.connections.open") == 2
        assert not scene.adapter.gaps


@pytest.mark.parametrize(
    ("kind", "reason"), [("member", None), ("guest", "guest"), ("stranger", "another")]
)
async def test_only_full_members_may_make_the_agent_act(
    scene: Scene, kind: Any, reason: str | None
) -> None:
    person = scene.slack.person("Zoe", kind)

    why = await scene.adapter.refusal(Speaker(person, "Zoe"), PlaceKey("slack", "C:1"))

    assert (reason or "") in (why or "")
    assert (why is None) == (reason is None)


@pytest.mark.parametrize("fault", [{"status": 500}, {"status": 429}])
async def test_a_hiccup_of_slack_is_no_refusal(scene: Scene, fault: dict[str, Any]) -> None:
    scene.slack.fail("users.info", times=1, **fault)

    speaker = Speaker(scene.ann, "Ann")
    assert await scene.adapter.refusal(speaker, PlaceKey("slack", "C:1")) is None


def overheard(place: str) -> Heard:
    return Heard(PlaceKey("slack", place), place, "9.0", Speaker("U1", "Ann"), "hello")


async def test_it_says_where_it_is_not_and_how_to_bring_it_there(scene: Scene) -> None:
    elsewhere = scene.slack.channel("elsewhere", [scene.ann])
    there = scene.slack.say(scene.ann, elsewhere, "root")
    here = scene.slack.say(scene.ann, scene.channel, "root")

    away = await scene.adapter.absence(overheard(f"{elsewhere}:{there}"))
    private = await scene.adapter.absence(overheard("D0001:1.0"))

    assert "not in this channel; invite it" in (away or "")
    assert "a direct message with another agent" in (private or "")
    assert await scene.adapter.absence(overheard(f"{scene.channel}:{here}")) is None
    scene.slack.fail("conversations.replies", status=429)
    assert await scene.adapter.absence(overheard(f"{elsewhere}:{there}")) is None


async def test_a_whisper_is_seen_by_one_person_only(scene: Scene) -> None:
    thread = scene.slack.say(scene.ann, scene.channel, "root")
    key = SessionKey("slack", f"{scene.channel}:{thread}", "claude")

    await scene.adapter.whisper(key, Speaker(scene.ann, "Ann"), "a <word>")

    assert [(m.only_for, m.words) for m in scene.slack.messages[1:]] == [
        (scene.ann, "a &lt;word&gt;")
    ]


async def test_a_place_that_is_closed_to_it_is_said_to_be_so_for_good(scene: Scene) -> None:
    thread = scene.slack.say(scene.ann, scene.channel, "root")
    scene.slack.channels[scene.channel].members.remove(scene.app.user)
    key = SessionKey("slack", f"{scene.channel}:{thread}", "claude")

    with pytest.raises(PostRejected, match="not_in_channel"):
        await scene.adapter.whisper(key, Speaker(scene.ann, "Ann"), "hello")


async def test_what_was_said_before_is_read_with_names_and_without_our_own_words(
    scene: Scene,
) -> None:
    bob = scene.slack.person("Bob")
    thread = scene.slack.say(scene.ann, scene.channel, "it breaks")
    scene.slack.say(bob, scene.channel, "see <https://a.b|this>", thread=thread)
    scene.slack.say(scene.app.user, scene.channel, "mine", thread=thread, bot=scene.app)
    mention = scene.slack.say(scene.ann, scene.channel, "help", thread=thread)
    scene.slack.say(bob, scene.channel, "too late", thread=thread)
    key = SessionKey("slack", f"{scene.channel}:{thread}", "claude")

    earlier = await scene.adapter.earlier(key, mention)

    said = [(each.speaker.name, each.text) for each in earlier]
    assert said == [("Ann", "it breaks"), ("Bob", "see this (https://a.b)")]


async def test_a_file_is_fetched_once_into_the_uploads(scene: Scene) -> None:
    kept = scene.slack.file("a.txt", b"inside")
    file = File("a.txt", "text/plain", f"slack{kept}/a.txt")

    brought = await scene.adapter.fetch(file)
    calls = len(scene.slack.calls)
    again = await scene.adapter.fetch(file)

    assert brought == again == file
    assert (scene.folder / "uploads" / file.url).read_bytes() == b"inside"
    assert len(scene.slack.calls) == calls


async def test_a_file_that_cannot_be_had_leaves_a_note(tmp_path: Path) -> None:
    async with staged(tmp_path, scopes=SCOPES - {"files:read"}) as scene:
        kept = scene.slack.file("a.txt", b"inside")

        note = await scene.adapter.fetch(File("a.txt", "text/plain", f"slack{kept}/a.txt"))

    assert note.url == f"slack{kept}/a.txt.missing.txt"
    assert "could not be fetched" in (tmp_path / "uploads" / note.url).read_text()


@pytest.mark.parametrize(
    ("name", "media_type", "kept_as"),
    [("report.html", "text/html", "report.html"), ("Plan", CANVAS, "Plan.html")],
)
async def test_pages_and_canvases_reach_the_agent(
    scene: Scene, name: str, media_type: str, kept_as: str
) -> None:
    kept = scene.slack.file(name, b"<h1>Plan</h1>", media_type)
    [file] = files_of({"files": [scene.slack.file_json(kept)]})

    brought = await scene.adapter.fetch(file)

    assert (brought.name, brought.media_type) == (kept_as, "text/html")
    assert (scene.folder / "uploads" / brought.url).read_bytes() == b"<h1>Plan</h1>"


async def test_a_page_that_the_app_may_not_read_is_not_the_login_page(tmp_path: Path) -> None:
    async with staged(tmp_path, scopes=SCOPES - {"files:read"}) as scene:
        kept = scene.slack.file("a.html", b"inside", "text/html")
        scene.app.scopes |= {"files:read"}
        scene.slack.files[kept].url = f"{scene.slack.files_url}/unknown/a.html"

        note = await scene.adapter.fetch(File("a.html", "text/html", f"slack{kept}/a.html"))

    assert "files:read" in (tmp_path / "uploads" / note.url).read_text()


async def test_the_login_page_is_not_taken_for_the_file(scene: Scene) -> None:
    kept = scene.slack.file("a.txt", b"inside")
    scene.slack.files[kept].url = f"{scene.slack.files_url}/unknown/a.txt"

    note = await scene.adapter.fetch(File("a.txt", "text/plain", f"slack{kept}/a.txt"))

    assert "files:read" in (scene.folder / "uploads" / note.url).read_text()


async def test_a_file_that_lies_elsewhere_is_not_fetched_and_the_token_stays_here(
    scene: Scene,
) -> None:
    with SimulatedSlack() as elsewhere:
        kept = scene.slack.file("plans.txt", b"inside")
        address = f"{elsewhere.files_url}/F1/plans.txt".replace("127.0.0.1", "localhost")
        scene.slack.files[kept].url = address

        note = await scene.adapter.fetch(File("plans.txt", "text/plain", f"slack{kept}/plans.txt"))

        assert elsewhere.downloads == []
    words = (scene.folder / "uploads" / note.url).read_text()
    assert f"outside Slack, at {address}" in words


@pytest.mark.parametrize(
    ("url", "base_url", "own"),
    [
        ("https://files.slack.com/files-pri/T1-F1/a.png", "https://slack.com/api/", True),
        ("https://files.slack-gov.com/a.png", "https://slack-gov.com/api/", True),
        ("https://files.slack.com/a.png", "https://proxy.example.com/slack/api/", True),
        ("http://127.0.0.1:9/files/a.png", "http://127.0.0.1:9/api/", True),
        ("http://files.slack.com/a.png", "https://slack.com/api/", False),
        ("https://docs.example.com/a.png", "https://slack.com/api/", False),
        ("https://evilslack.com/a.png", "https://slack.com/api/", False),
        ("https://slack.com.example.com/a.png", "https://slack.com/api/", False),
        ("https://slack.com@example.com/a.png", "https://slack.com/api/", False),
        ("", "https://slack.com/api/", False),
    ],
)
def test_the_token_is_shown_to_slack_only(url: str, base_url: str, own: bool) -> None:
    assert is_slack_address(url, base_url) == own


async def test_two_agents_that_are_shown_one_file_both_get_it_whole(scene: Scene) -> None:
    content = bytes(range(256)) * 8192
    kept = scene.slack.file("a.bin", content)
    file = File("a.bin", "application/octet-stream", f"slack{kept}/a.bin")

    brought = await asyncio.gather(*(scene.adapter.fetch(file) for _ in range(8)))

    assert brought == [file] * 8
    folder = (scene.folder / "uploads" / file.url).parent
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"a.bin": content}


async def test_an_open_question_suspends_the_session_until_it_is_answered(scene: Scene) -> None:
    thread = scene.slack.say(scene.ann, scene.channel, "root")
    key = SessionKey("slack", f"{scene.channel}:{thread}", "claude")
    status = (scene.app, scene.channel, thread)
    option = AskOption("a", "Allow", "allow_once")
    ask = PostContent(kind="ask", state="open", text="run ls", ask=1, options=(option,))
    turn = PostContent(kind="turn", state="working", asker=scene.ann)
    await scene.adapter.send(PostSend("create", key, "ab-1", turn))
    await scene.until(lambda: scene.slack.status(*status) == "processing")

    asked = await scene.adapter.send(PostSend("create", key, "ab-2", ask))
    await scene.until(lambda: scene.slack.status(*status) == "suspended")
    answered = replace(ask, state="answered", note="Ann: Allow")
    await send(scene.adapter, PostSend("finish", key, "ab-2", answered, asked.remote_id))

    await scene.until(lambda: scene.slack.status(*status) == "processing")
    assert [told.ts for told in scene.slack.notified(scene.ann)] == [asked.remote_id]


async def test_a_thread_without_a_session_does_not_concern_the_others(scene: Scene) -> None:
    elsewhere = scene.slack.channel("elsewhere", [scene.ann, scene.app])
    scene.slack.channels[elsewhere].sessions = False
    threads = [(each, scene.slack.say(scene.ann, each, "x")) for each in (elsewhere, scene.channel)]
    for number, (channel, thread) in enumerate(threads):
        key = SessionKey("slack", f"{channel}:{thread}", "claude")
        turn = PostContent(kind="turn", state="working", asker="U0GONE")
        scene.app.streams = False
        await scene.adapter.send(PostSend("create", key, f"ab-{number}", turn))

    await scene.until(lambda: scene.slack.status(scene.app, *threads[0]) == "thinking")
    # The person who asked is not in the channel: the session begins without them.
    await scene.until(lambda: scene.slack.status(scene.app, *threads[1]) == "processing")


async def test_a_status_that_an_earlier_run_left_is_ended_at_the_start(tmp_path: Path) -> None:
    places: list[ActivePlace] = []

    async def active(since: float) -> list[ActivePlace]:
        return [each for each in places if each.updated_at >= since]

    async with staged(tmp_path, active) as scene:
        threads = [scene.slack.say(scene.ann, scene.channel, "root") for _ in range(2)]
        for thread, age in zip(threads, (60.0, 7200.0), strict=True):
            scene.slack.set_status(scene.app, scene.channel, thread, "processing")
            key = SessionKey("slack", f"{scene.channel}:{thread}", "claude")
            places.append(ActivePlace(key, thread, thread, scene.slack.now() - age))
        async with scene.listening():
            place = (scene.app, scene.channel, threads[0])
            await scene.until(lambda: scene.slack.status(*place) == "active")

        calls = [c for c in scene.slack.calls if c.method == "agents.sessions.setStatus"]
    assert len(calls) == 1


async def test_empty_files_are_left_out_with_a_word(scene: Scene) -> None:
    thread = scene.slack.say(scene.ann, scene.channel, "root")
    key = SessionKey("slack", f"{scene.channel}:{thread}", "claude")
    (scene.folder / "uploads" / "a").mkdir(parents=True)
    (scene.folder / "uploads" / "a" / "one.txt").write_text("one")
    one = MadeFile("one.txt", "text/plain", "a/one.txt", 3)
    empty = MadeFile("empty.txt", "text/plain", "a/empty.txt", 0)
    content = PostContent(kind="files", files=(empty, one))
    sent = await scene.adapter.send(PostSend("create", key, "ab-1", content))

    await scene.adapter.send(PostSend("finish", key, "ab-1", content, sent.remote_id))
    alone = replace(content, files=(empty,))
    await scene.adapter.send(PostSend("create", key, "ab-2", alone))

    [_, shared, named] = scene.slack.messages
    assert [scene.slack.files[file].name for file in shared.files] == ["one.txt"]
    assert shared.text == "Left out, because empty: empty.txt"
    assert "no empty files" in named.words


async def send(adapter: SlackAdapter, post: PostSend) -> None:
    """Send a post as the outbox does: again, when the adapter says not now."""
    try:
        await adapter.send(post)
    except PostDelayed as error:
        await asyncio.sleep(error.retry_after or 0)
        await adapter.send(post)


async def test_a_change_is_understood_from_the_line(scene: Scene) -> None:
    async with scene.listening():
        ts = scene.slack.say(scene.ann, scene.channel, f"<@{scene.app.user}> one")
        scene.slack.edit(ts, f"<@{scene.app.user}> two")
        await scene.until(lambda: len(scene.slack.acknowledged) == 3)

    changes = [scene.adapter.parse(delivery) for delivery in scene.taken]
    assert [each.text for each in changes if isinstance(each, Changed)] == ["@claude two"]


@pytest.mark.parametrize(
    ("url", "direct"),
    [
        ("http://127.0.0.1:9/api/", True),
        ("http://localhost:9/api/", True),
        ("http://[::1]:9/api/", True),
        ("https://slack.com/api/", False),
    ],
)
def test_loopback_is_called_without_a_proxy(
    url: str, direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)

    assert bypasses_proxy(url) == direct


async def test_a_purge_changes_its_own_messages_and_files_and_names_those_of_others(
    scene: Scene,
) -> None:
    leaked = "zq7-Pelican-4411-secret"
    slack, vault = scene.slack, vault_of(leaked)
    file = slack.file("theirs.txt", leaked.encode())
    thread = slack.say(scene.ann, scene.channel, f"use {leaked}")
    with_file = slack.say(scene.ann, scene.channel, "and this", thread=thread, files=[file])
    key = SessionKey("slack", f"{scene.channel}:{thread}", "claude")
    (scene.folder / "uploads" / "one").mkdir(parents=True)
    (scene.folder / "uploads" / "one" / "out.txt").write_text(leaked)
    made = MadeFile("out.txt", "text/plain", "one/out.txt", len(leaked))
    for marker, content in {
        "ab-1": PostContent(kind="turn", state="done", text=f"Used {leaked}."),
        "ab-2": PostContent(kind="notice", note="Ordinary."),
        "ab-3": PostContent(kind="files", files=(made,)),
    }.items():
        sent = await scene.adapter.send(PostSend("create", key, marker, content))
        await scene.adapter.send(PostSend("finish", key, marker, content, sent.remote_id))
    assert len(slack.files) == 2

    cleaned = await scene.adapter.purge(key, vault)

    assert [each.ts for each in slack.messages if leaked in repr(each)] == [thread]
    assert cleaned.changed == 2
    assert [link.rpartition(":")[2] for link in cleaned.left] == [thread, with_file]
    assert list(slack.files) == [file]
    assert any("Used [secret]." in each.words for each in slack.messages)
