"""What a search over threads finds, and how much it reads for that."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import JSON, bindparam, insert, text

from app.clock import SystemClock
from app.model.conversations import Wanted
from app.model.keys import PlaceKey
from app.store import tables
from app.store.conversations import SEARCHED_ROWS, ConversationStore
from app.store.database import Database
from tests.support.memory import open_stores

pytestmark = pytest.mark.anyio

THREADS = 5_000
ROWS = 20
FILL = """
with recursive count(n) as (select 0 union all select n + 1 from count where n + 1 < :rows)
insert into transcript (id, place, kind, text, data, at)
select n + 1, n % :threads + 1, case when n < :threads then 'message' else 'text' end, case n
  when 0 then 'The oldest Tumbleweed.'
  when 42001 then 'Viel ÄRGER [*] mit Οδός.'
  when 42000 then 'A purple Heron, seen in the reeds.'
  else 'Some ordinary words, as agents write them all day long.' end, :data, n
from count"""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Fill a store with 5,000 threads and more rows than a search reads."""
    folder: Path = tmp_path_factory.mktemp("many")
    with open_stores(folder, SystemClock()) as (database, _), database.engine.begin() as made:
        made.execute(insert(tables.place), [_place(number) for number in range(THREADS)])
        made.execute(insert(tables.session), [_session(number) for number in range(THREADS)])
        made.execute(insert(tables.surface), [_surface(number) for number in range(THREADS)])
        fill = text(FILL).bindparams(bindparam("data", {}, type_=JSON))
        made.execute(fill, {"rows": THREADS * (ROWS + 1), "threads": THREADS})
        made.commit()
        yield database


def _place(number: int) -> dict[str, Any]:
    return {"id": number + 1, "service": "web", "name": f"t{number}", "title": f"Task {number}."}


def _session(number: int) -> dict[str, Any]:
    title = "Mend the 100% cold_start" if number == 7 else ""
    who = {"id": number + 1, "agent": "demo", "place": number + 1, "title": title}
    return {**who, "created_at": 0.0, "updated_at": float(number)}


def _surface(number: int) -> dict[str, Any]:
    where = {"service": "web", "external": f"t{number}", "agent": "demo"}
    return {**where, "session": number + 1, "place": number + 1}


async def found(database: Database, *words: str) -> list[str]:
    sessions = ConversationStore(database, time.time)
    return [each.place.name for each in await sessions.search(words, Wanted(), limit=20)]


async def test_all_words_must_be_in_the_text_or_in_a_title(database: Database) -> None:
    assert await found(database, "heron", "PURPLE") == ["t2000"]
    assert await found(database, "heron", "yellow") == []
    assert await found(database, "task", "4321.") == ["t4321"]
    assert await found(database, "0% cold_s") == ["t7"]
    assert await found(database, "d%d_start") == []


@pytest.mark.parametrize("word", ["ärger", "Ärger", "ÄRGER", "ärger [*]", "ΟΔΌ", "οδό"])
async def test_the_case_of_no_letter_counts(database: Database, word: str) -> None:
    assert await found(database, word) == ["t2001"]
    assert await found(database, f"{word}x") == []


async def test_what_was_found_is_shown_and_the_most_recent_comes_first(database: Database) -> None:
    sessions = ConversationStore(database, time.time)

    (heron,) = await sessions.search(["heron"], Wanted(), limit=20)
    many = await sessions.search(["ordinary"], Wanted(), limit=3)

    assert heron.place == PlaceKey("web", "t2000")
    assert heron.found == "A purple Heron, seen in the reeds."
    assert [each.place.name for each in many] == ["t4999", "t4998", "t4997"]


async def test_a_search_reads_a_bounded_part_of_the_history(database: Database) -> None:
    assert THREADS * (ROWS + 1) > SEARCHED_ROWS
    assert await found(database, "tumbleweed") == []
