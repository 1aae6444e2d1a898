"""The keeper: notes reach their file once, are found by words, and never by another agent."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typing_extensions import override

from app.agents.files import AgentFiles
from app.clock import SystemClock
from app.errors import NotFound
from app.features.memory.service import Memory, worth_keeping
from app.features.memory.store import MemoryStore
from app.model.types import TurnRef
from app.signals import ALONE
from app.store.database import Database
from app.store.stores import Stores
from app.vault import Vault
from tests.support.memory import open_stores

pytestmark = pytest.mark.anyio

SECRET = "hunter2-hunter2"


REF = TurnRef(4, 1)


def make_memory(stores: Stores, files: AgentFiles, store: MemoryStore | None = None) -> Memory:
    """Make the memory of a bridge that has little else."""
    runtime: Any = SimpleNamespace(
        clock=SystemClock(),
        signals=ALONE,
        files=files,
        agents=SimpleNamespace(title=str),
        feed=SimpleNamespace(notify=lambda _session: None),
        stores=SimpleNamespace(
            transcript=SimpleNamespace(append=_note), open=lambda kind: store or stores.open(kind)
        ),
    )
    return Memory(runtime)


async def _note(_entries: object) -> None:
    """Write nothing: there is no turn."""


class House:
    """A keeper on a real store and real files."""

    def __init__(self, folder: Path, database: Database, stores: Stores) -> None:
        self.database = database
        self.stores = stores
        self.files = AgentFiles(folder, Vault([SECRET]))
        self.store = stores.open(MemoryStore)
        self.keeper = make_memory(self.stores, self.files)

    def logs(self, agent: str) -> str:
        paths = [file.path for file in self.files.list_files(agent)]
        found = (self.files.read(agent, path) for path in paths)
        return "\n".join(file.text for file in found if file is not None)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    with open_stores(tmp_path, SystemClock()) as (database, stores):
        yield House(tmp_path, database, stores)


async def test_a_note_is_found_by_its_words_and_only_by_its_agent(house: House) -> None:
    await house.keeper.keep("claude", REF, "- The staging database is called bluefin.")

    (found,) = await house.keeper.recall("claude", "Which database has staging?")

    assert (found.text, found.session) == ("- The staging database is called bluefin.", 4)
    assert await house.keeper.recall("codex", "Which database has staging?") == ()
    assert await house.keeper.entries("codex") == []
    assert house.logs("codex") == ""


async def test_a_note_that_was_committed_before_a_crash_is_written_once(house: House) -> None:
    await house.store.keep("claude", 4, "- Kept before the crash.")
    (note,) = await house.store.kept()

    await house.keeper.write()
    await house.keeper.write()
    written = house.logs("claude")
    assert written.count("Kept before the crash") == 1
    assert f"note {note.id}" in written


async def test_a_note_whose_row_outlived_its_line_is_not_doubled(house: House) -> None:
    await house.store.keep("claude", 4, "- Only once.")
    forgetful = make_memory(house.stores, house.files, Forgetful(house.database, time.time))

    await forgetful.write()
    await house.keeper.write()

    assert house.logs("claude").count("Only once") == 1
    assert await house.store.kept() == []


class Forgetful(MemoryStore):
    """A store that dies between the line in the file and the row."""

    @override
    async def written(self, note: int) -> None:
        pass


async def test_what_people_change_by_hand_is_found_as_it_is_now(house: House) -> None:
    await house.keeper.keep("claude", REF, "- Releases are on Friday.")
    (entry,) = await house.keeper.entries("claude")
    assert await house.keeper.entries("claude", "friday") == [entry]
    path = f"memory/{entry.day}.md"

    house.files.write("claude", path, "Releases are on Monday, not on a Sunday.\n")

    assert await house.keeper.entries("claude", "friday") == []
    assert [each.text for each in await house.keeper.entries("claude", "releases monday")] == [
        "Releases are on Monday, not on a Sunday."
    ]
    house.files.delete("claude", path)
    assert await house.keeper.entries("claude", "monday") == []


async def test_an_entry_is_removed_once_and_a_changed_one_is_not(house: House) -> None:
    await house.keeper.keep("claude", REF, "- First.")
    await house.keeper.keep("claude", REF, "- Second.")
    last, first = await house.keeper.entries("claude")

    await house.keeper.remove("claude", first.day, first.id)

    assert await house.keeper.entries("claude") == [last]
    with pytest.raises(NotFound):
        await house.keeper.remove("claude", first.day, first.id)
    with pytest.raises(NotFound):
        await house.keeper.remove("claude", "not-a-day", last.id)
    await house.keeper.remove("claude", last.day, last.id)
    assert house.logs("claude") == ""


@pytest.mark.parametrize("words", ['"', "*", "a AND (b", "NEAR(", "текст: x*", "text : ^x", "- -"])
async def test_no_search_breaks_the_query(house: House, words: str) -> None:
    await house.keeper.keep("claude", REF, "- Something else.")

    assert await house.keeper.entries("claude", words) == []
    assert await house.keeper.recall("claude", words) == ()


async def test_a_removed_agent_leaves_no_note_and_no_index(house: House) -> None:
    await house.keeper.keep("claude", REF, "- Something to find.")
    assert await house.keeper.recall("claude", "something") != ()
    await house.store.keep("claude", 4, "- Not yet written.")

    await house.keeper.forget_agent("claude")

    assert await house.store.kept() == []
    assert await house.store.versions("claude") == {}
    assert await house.store.search("claude", ["something"], every=True, limit=5) == []


async def test_a_recall_is_bounded(house: House) -> None:
    for number in range(12):
        await house.keeper.keep("claude", REF, f"- Database number {number}: {'x' * 700}")

    found = await house.keeper.recall("claude", "database")

    assert 1 <= len(found) <= 2


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ("nothing", ""),
        ("Nothing.", ""),
        ("", ""),
        ("- One fact.\n- Another.", "- One fact.\n- Another."),
        ("Here it is:\n* A fact\nBye", "- A fact"),
        ("-\n- ", ""),
    ],
)
def test_only_lines_of_a_list_are_worth_keeping(answer: str, kept: str) -> None:
    assert worth_keeping(answer) == kept
