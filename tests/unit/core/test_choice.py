"""Which repository a new conversation works in: what is found out, what is asked, what follows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.repositories.directory import Directory
from app.core.turns.place import OFFERED, ChosenRepository, RepositoryChoice, find_named, question
from app.errors import RepositoryError
from app.model.inbound import Effect, Heard
from app.model.keys import PlaceKey
from app.model.types import TurnState
from app.model.updates import Ask
from app.services import find_area
from tests.support.base import make_base
from tests.support.clock import ManualClock
from tests.support.desk import STRANGER, Desk, Rules, running_desk
from tests.support.memory import decision, heard, open_stores

pytestmark = pytest.mark.anyio

CHANNEL = PlaceKey("slack", "C1")
TWO = ("acme/api", "acme/site")
ASK_SECONDS = 3600.0


@dataclass
class Shelf:
    """A forge's repositories: what each agent's credentials open, or why that is not known."""

    opened: dict[str, Sequence[str]] = field(default_factory=dict)
    broken: str = ""
    looks: int = 0
    hangs: bool = False

    def __post_init__(self) -> None:
        self.looked = asyncio.Event()

    async def repositories(self, agent: str) -> Sequence[str]:
        self.looks += 1
        self.looked.set()
        if self.hangs:
            await asyncio.Future[None]()
        if self.broken:
            raise RepositoryError(self.broken)
        return self.opened.get(agent, ())


@pytest.fixture
def shelf() -> Shelf:
    return Shelf({"demo": TWO, "codex": TWO})


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def desk(tmp_path: Path, clock: ManualClock, shelf: Shelf) -> AsyncIterator[Desk]:
    rules = Rules(
        agents=("demo", "codex", "guide"),
        max_turns=1,
        ask_seconds=ASK_SECONDS,
        service="slack",
        list_repositories=shelf.repositories,
    )
    async with running_desk(tmp_path, clock=clock, rules=rules) as desk:
        yield desk


def said(text: str, *agents: str, thread: str = "C1:1.0") -> Heard:
    """Say something to agents in a thread of the channel."""
    return replace(heard(text, thread), place=PlaceKey("slack", thread), mentions=agents)


async def asked(desk: Desk, thread: str = "C1:1.0", agent: str = "demo") -> Ask:
    """Wait until an agent's turn waits for its question, which is shown."""
    session = desk.session(thread, agent).id
    await desk.until(lambda: bool(desk.stores.asks.open_in(session)))
    await desk.until(lambda: any(post.content.kind == "ask" for post in desk.posts(agent)))
    [ask] = desk.stores.asks.open_in(session)
    return ask


def notices(desk: Desk, agent: str = "demo") -> list[str]:
    return [post.content.note for post in desk.posts(agent) if post.content.kind == "notice"]


async def test_whoever_waits_for_a_choice_keeps_nobody_waiting(desk: Desk) -> None:
    first = await desk.hear(said("look", "demo"))
    ask = await asked(desk)
    second = await desk.hear(said("explain it", "guide", thread="C2:1.0"))

    await desk.reached(second.turns[0].turn, "done")
    assert [option.id for option in ask.options] == [*TWO, "none"]
    assert ask.kind == "repository"
    assert desk.launcher.told("open", "C1:1.0") == []
    await desk.answer(ask.id, "none")
    await desk.reached(first.turns[0].turn, "done")
    assert desk.stores.decisions.place(PlaceKey("slack", "C1:1.0")).repository == "none"
    assert desk.stores.decisions.place(CHANNEL).repository == "none"


async def test_a_stranger_chooses_nothing_and_an_answer_counts_once(desk: Desk) -> None:
    [ref] = (await desk.hear(said("look", "demo"))).turns
    ask = await asked(desk)

    await desk.answer(ask.id, "none", STRANGER)
    assert desk.turn(ref.turn).state is TurnState.QUEUED
    await desk.answer(ask.id, "none")
    await desk.reached(ref.turn, "done")
    await desk.answer(ask.id, "acme/api")

    assert desk.stores.decisions.place(CHANNEL).repository == "none"
    assert "already answered this" in desk.deliveries.settled[-1][1]


async def test_one_answer_is_enough_for_all_agents_of_a_place(desk: Desk) -> None:
    turns = (await desk.hear(said("look, both of you", "demo", "codex"))).turns
    ask = await asked(desk)
    other = await asked(desk, agent="codex")

    await desk.answer(other.id, "none")
    for ref in turns:
        await desk.reached(ref.turn, "done")
    closed = desk.stores.asks.ask(ask.id)
    assert closed is not None
    assert (closed.state, closed.answer, closed.answered_by) == ("answered", "none", "Ann")


async def test_a_choice_that_nobody_makes_expires_where_people_see_it(
    desk: Desk, clock: ManualClock
) -> None:
    [ref] = (await desk.hear(said("look", "demo"))).turns
    ask = await asked(desk)

    await clock.advance(ASK_SECONDS + 1)
    await desk.reached(ref.turn, "cancelled")
    await desk.until(lambda: bool(notices(desk)))
    assert notices(desk) == [f"Nobody answered: `{ask.title}`"]
    assert desk.stores.decisions.place(CHANNEL).repository is None


async def test_stop_takes_the_question_back(desk: Desk) -> None:
    [ref] = (await desk.hear(said("look", "demo"))).turns
    ask = await asked(desk)

    await desk.hear(said("stop", "demo"))
    await desk.reached(ref.turn, "cancelled")
    closed = desk.stores.asks.ask(ask.id)
    assert closed is not None
    assert closed.state == "cancelled"


async def test_words_that_are_no_answer_wait_with_the_turn_and_are_answered(desk: Desk) -> None:
    [ref] = (await desk.hear(said("look", "demo"))).turns
    await asked(desk)

    [same] = (await desk.hear(said("the one with the api", "demo"))).turns
    await desk.until(lambda: bool(notices(desk)))
    assert same == ref
    assert notices(desk)[0].endswith("Say acme/api, acme/site or none.")
    assert (await desk.hear(said("None", "demo"))).turns == (ref,)
    await desk.reached(ref.turn, "done")
    [prompt] = desk.launcher.told("prompt", "C1:1.0")
    assert "the one with the api" in prompt


async def test_a_remembered_choice_counts_for_new_threads_and_not_elsewhere(
    desk: Desk, shelf: Shelf
) -> None:
    [ref] = (await desk.hear(said("look", "demo"))).turns
    await desk.answer((await asked(desk)).id, "none")
    await desk.reached(ref.turn, "done")
    looks = shelf.looks

    [new] = (await desk.hear(said("look", "demo", thread="C1:2.0"))).turns
    await desk.reached(new.turn, "done")
    assert shelf.looks == looks
    await desk.hear(said("look", "demo", thread="C9:2.0"))
    await asked(desk, "C9:2.0")


async def test_a_conversation_that_has_begun_is_not_asked_where_it_works(
    desk: Desk, shelf: Shelf
) -> None:
    shelf.opened["demo"] = ()
    [ref] = (await desk.hear(said("look", "demo"))).turns
    await desk.reached(ref.turn, "done")
    shelf.opened["demo"] = TWO

    [ref] = (await desk.hear(said("look again", "demo"))).turns
    await desk.reached(ref.turn, "done")
    [ref] = (await desk.hear(said("you too", "codex"))).turns
    await desk.reached(ref.turn, "done")
    assert desk.stores.decisions.place(PlaceKey("slack", "C1:1.0")).repository is None


async def test_what_there_is_to_choose_from_not_being_known_is_a_failure_with_a_remedy(
    desk: Desk, shelf: Shelf
) -> None:
    shelf.broken = "GitHub is down. Say `repo none`."

    [ref] = (await desk.hear(said("look", "demo"))).turns
    await desk.reached(ref.turn, "failed")
    assert desk.turn(ref.turn).error == shelf.broken
    await desk.hear(said("repo none", "demo"))
    [ref] = (await desk.hear(said("look", "demo"))).turns
    await desk.reached(ref.turn, "done")


@pytest.mark.parametrize(
    ("remembered", "name"), [(None, None), ("acme/site", "acme/site"), ("none", "none")]
)
async def test_a_default_asks_nobody_and_what_an_area_remembers_stands_above_it(
    tmp_path: Path, clock: ManualClock, shelf: Shelf, remembered: str | None, name: str | None
) -> None:
    directory = Directory(
        "https://git.example", tmp_path, tmp_path, default="acme/api", find_area=find_area
    )
    with open_stores(tmp_path, clock) as (_, stores):
        places = stores.decisions
        wider = (Effect("remember", value=remembered),) if remembered else ()
        await places.accept(decision(said("repo always", "demo"), effects=wider))
        message = said("look", "demo", thread="C1:2.0")
        await places.accept(decision(message, "demo"))
        [session] = stores.sessions.in_place(message.place)
        choice = RepositoryChoice(
            make_base(stores, clock),
            directory,
            list_repositories=shelf.repositories,
        )

        assert await choice.settle(session, session.key, None, list) == ChosenRepository(name)
        assert places.place(message.place).repository == name
    assert shelf.looks == 0


async def test_stop_does_not_wait_for_the_list(desk: Desk, shelf: Shelf) -> None:
    shelf.hangs = True
    [ref] = (await desk.hear(said("look", "demo"))).turns
    async with asyncio.timeout(5):
        await shelf.looked.wait()
    await desk.hear(said("stop", "demo"))
    await desk.reached(ref.turn, "cancelled")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("fix acme/api please", "acme/api"),
        ("Acme/API.", "acme/api"),
        ("see https://github.com/acme/api/issues/3", "acme/api"),
        ("git@github.com:acme/api.git", "acme/api"),
        ("(acme/api)", "acme/api"),
        ("acme/api and acme/api again", "acme/api"),
        ("acme/api like acme/site", None),
        ("acme/api-docs", None),
        ("acme/api.js", None),
        ("src/acme/api/main.py", None),
        ("not-acme/api", None),
        ("the api", None),
        ("", None),
    ],
)
def test_a_repository_is_named_by_its_whole_name(text: str, name: str | None) -> None:
    assert find_named([text], TWO) == name


@given(st.text(alphabet="acme/pisthf.:@- \n\u00e4", max_size=200))
def test_whatever_is_said_names_one_of_those_or_none(text: str) -> None:
    assert find_named([text], TWO) in {*TWO, None}


def test_a_question_offers_as_many_as_a_list_holds_and_says_how_to_take_another() -> None:
    names = [f"acme/r{number}" for number in range(OFFERED + 20)]

    asked = question("demo", names)
    assert len(asked.options) == OFFERED + 1
    assert asked.options[-1].id == "none"
    assert "for any other, say `repo OWNER/NAME`" in asked.title
    assert "any other" not in question("demo", names[:OFFERED]).title
