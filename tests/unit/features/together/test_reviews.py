"""Reviews that agents give: stored first, on lines of the diff, published and told once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from typing_extensions import override

from app.clock import SystemClock
from app.core.feed import Feed
from app.core.outbox import Outbox
from app.errors import Conflict, RepositoryError
from app.features.together import review
from app.features.together.group import Announcer
from app.features.together.model import Review
from app.features.together.review import Reviews
from app.features.together.service import make_submit_tool
from app.features.together.store import GroupStore, ReviewStore
from app.model.agents import Caller, Result
from app.model.proposals import ReviewFinding, Submission
from app.signals import ALONE, Signals
from tests.support.base import make_base
from tests.support.forge import Forge
from tests.support.members import Hub
from tests.support.pair import BRANCH, PLACE, Pair, pair
from tests.support.recorder import Recorder
from tests.support.yard import SECRET

LINES = "one\ntwo\nthree\n"


class Host(Forge):
    """A forge that takes reviews, once each."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.taken: dict[str, Submission] = {}
        self.trouble = ""
        self.came = asyncio.Event()

    @override
    async def review(self, submission: Submission) -> str | None:
        if self.trouble:
            raise RepositoryError(self.trouble)
        self.taken.setdefault(submission.mark, submission)
        self.came.set()
        return f"https://forge.example.com/{submission.mark}"


class Bench:
    """Demo has pushed a file, and Codex is asked to review it."""

    def __init__(
        self, here: Pair, host: Host, *, home: str = "demo", signals: Signals = ALONE
    ) -> None:
        self.here, self.host = here, host
        self.recorders = {f"web:{name}": Recorder(name) for name in ("demo", "codex")}
        clock, stores = SystemClock(), here.stores
        self.outbox = Outbox(make_base(stores, clock, self.recorders, here.yard.vault))
        self.store = stores.open(ReviewStore)
        announcer = Announcer(
            stores.open(GroupStore),
            self.outbox,
            Feed(stores.transcript, stores.sessions),
            clock,
            here.yard.vault.redact,
        )
        self.reviews = Reviews(
            self.store,
            announcer,
            stores.sessions,
            here.provider,
            here.yard.checkouts,
            host,
            clock,
            names={"codex": "Codex"},
            home_of=self._find_home,
            signals=signals,
        )

        self._home = here.session(home).id

    async def _find_home(self, _review: Review) -> tuple[int, str]:
        return self._home, "demo"

    async def submit(
        self, verdict: str, *findings: ReviewFinding, body: str = "Two things."
    ) -> Result:
        """Call the tool as Codex."""
        tool = make_submit_tool(self.reviews)
        session = self.here.session("codex")
        [turn] = await self.here.stores.turns.turns(session.id)
        comments = [each.data() for each in findings]
        asked = {"verdict": verdict, "body": body, "comments": comments}
        return await tool.run(Caller(session, turn), asked)

    async def told(self) -> list[str]:
        """Read what the place was told."""
        rows = await self.here.stores.transcript.read_place(PLACE, after=0, limit=100)
        return [row.text for row in rows if row.kind == "notice" and row.note is None]

    async def kept(self) -> Review:
        """Read the review of Codex."""
        [turn] = await self.here.stores.turns.turns(self.here.session("codex").id)
        found = self.store.of_turn(turn.id)
        assert found is not None
        return found


@asynccontextmanager
async def bench(folder: Path, *, home: str = "demo") -> AsyncIterator[Bench]:
    async with pair(folder) as here:
        await here.begin("demo")
        await here.end("demo", work=LINES)
        await here.begin("codex", "review this")
        made = Bench(here, Host(folder / "forge.json"), home=home)
        yield made
        await made.reviews.close()
        await made.outbox.close(grace=0)


@pytest.mark.long
async def test_a_review_is_stored_published_and_told_with_its_verdict_first(tmp_path: Path) -> None:
    async with bench(tmp_path) as desk:
        found = ReviewFinding("work.txt", 2, f"{SECRET} is wrong")

        result = await desk.submit("request_changes", found)

        [sent] = desk.host.taken.values()
        assert (sent.agent, sent.branch, sent.verdict) == ("codex", BRANCH, "request_changes")
        assert sent.commit == desk.here.yard.server.log("acme/app", BRANCH, "%H")[:40]
        assert SECRET not in str(sent)
        assert (result["link"], result["comments"]) == (f"https://forge.example.com/{sent.mark}", 1)
        [told] = await desk.told()
        assert told.startswith(f"Codex requested changes to `{BRANCH}`.\n\nTwo things.")
        assert "- `work.txt:2`: " in told
        assert SECRET not in told
        assert str(result["link"]) in told
        author = desk.here.session("demo").id
        kept = await desk.kept()
        assert (kept.state, kept.author, kept.findings[0].line) == ("sent", author, 2)


@pytest.mark.long
async def test_a_second_review_in_one_turn_changes_nothing(tmp_path: Path) -> None:
    async with bench(tmp_path) as desk:
        first = await desk.submit("approve", body="")
        again = await desk.submit("request_changes")

        assert again["verdict"] == "approve"
        assert "already" in again["note"]
        assert first["note"] == ""
        assert len(desk.host.taken) == 1
        assert len(await desk.told()) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    "found",
    [ReviewFinding("work.txt", 9, "beyond"), ReviewFinding("README.md", 1, "not in the diff")],
)
async def test_a_comment_beyond_the_diff_is_refused_with_the_lines_there_are(
    tmp_path: Path, found: ReviewFinding
) -> None:
    async with bench(tmp_path) as desk:
        with pytest.raises(Conflict) as refused:
            await desk.submit("comment", ReviewFinding("work.txt", 1, "fine"), found)

        assert f"{found.path}:{found.line}" in str(refused.value)
        assert "work.txt:1-3" in str(refused.value)
        assert desk.store.unsent() == []
        assert await desk.told() == []


async def test_changes_are_not_requested_without_a_word(tmp_path: Path) -> None:
    async with bench(tmp_path) as desk:
        with pytest.raises(Conflict, match="Say what has to change"):
            await desk.submit("request_changes", body=" ")


@pytest.mark.long
async def test_what_could_not_be_published_is_shown_and_the_next_start_tries_again(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as desk:
        desk.host.trouble = "GitHub is down"
        result = await desk.submit("approve")
        assert result["link"] == ""
        [told] = await desk.told()
        assert "GitHub is down" in told

        desk.host.trouble = ""
        again = Bench(desk.here, desk.host)
        [unsent] = desk.store.unsent()
        await again.reviews.publish(unsent)

        assert (await desk.kept()).link == f"https://forge.example.com/review:{unsent.id}"
        assert len(desk.host.taken) == 1
        assert len(await desk.told()) == 1
        await again.outbox.close(grace=0)


@pytest.mark.long
async def test_what_a_member_left_unpublished_is_published_by_the_desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench(tmp_path) as worker:
        worker.host.trouble = "cut off"
        await worker.submit("approve")
        worker.host.trouble = ""
        hub = Hub()
        lines = {name: hub.line(name, is_leader=name == "desk") for name in ("desk", "front")}
        others = {name: Bench(worker.here, worker.host, signals=lines[name]) for name in lines}
        lines["desk"].sweep()
        monkeypatch.setattr(review, "LATE_SECONDS", 0.0)
        lines["front"].sweep()
        assert worker.host.taken == {}, "it has not waited, and a front without the leader did it"

        desk = Bench(worker.here, worker.host, signals=hub.line("next", is_leader=True))
        hub.lines["next"].sweep()

        await asyncio.wait_for(worker.host.came.wait(), 5)
        assert len(worker.host.taken) == 1
        for each in (desk, *others.values()):
            await each.reviews.close()
            await each.outbox.close(grace=0)


@pytest.mark.long
async def test_a_reviewer_in_its_own_place_does_not_repeat_what_is_on_the_pull_request(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path, home="codex") as desk:
        await desk.submit("approve")

        assert len(desk.host.taken) == 1
        assert await desk.told() == []
