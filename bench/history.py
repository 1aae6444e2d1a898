"""Makes, fills and reads stores: sessions with messages, a turn that is done, and its answer."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Table, create_engine, func, insert, select

from app.model.posts import PostContent
from app.store.database import FILE_NAME, Database, sqlite_url
from app.store.tables import (
    decision,
    delivery,
    heard,
    message,
    place,
    post,
    session,
    surface,
    transcript,
    turn,
)
from app.store.values import content_row
from bench.bridge import AGENT

ANSWER = "The tests pass again; the cause was a clock that two of them shared. " * 8
SERVICE = "web"


def stored(data_dir: Path, query: str, *values: object) -> int:
    """Ask the store of a bridge for a number, while the bridge runs or after it."""
    with closing(sqlite3.connect(f"file:{data_dir / FILE_NAME}?mode=ro", uri=True)) as database:
        return int(database.execute(query, values).fetchone()[0])


def make(data_dir: Path) -> None:
    """Make the store of a bridge that has never run."""
    data_dir.mkdir(mode=0o700)
    database = Database(sqlite_url(data_dir))
    database.open()
    database.close()


def fill(data_dir: Path, sessions: int) -> None:
    """Add as many parked sessions to a store whose schema is there and that nothing uses."""
    engine = create_engine(sqlite_url(data_dir))
    now = time.time()
    rows: dict[Table, list[dict[str, Any]]] = {table: [] for table in _TABLES}
    for number in range(1, sessions + 1):
        for table, row in _session(number, now - number).items():
            rows[table].append(row)
        rows[transcript].append(_answer(number, now - number))
    with engine.begin() as connection:
        for table, many in rows.items():
            connection.execute(insert(table), many)
    engine.dispose()


def lengthen(data_dir: Path, number: int, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows to the turn of a session: kind, text and data of each."""
    engine = create_engine(sqlite_url(data_dir))
    with engine.begin() as connection:
        last = connection.execute(select(func.max(transcript.c.id))).scalar_one()
        many = [
            {**_answer(number, time.time()), "id": last + count, "text": "", **row}
            for count, row in enumerate(rows, 1)
        ]
        connection.execute(insert(transcript), many)
    engine.dispose()


_TABLES = (
    delivery,
    place,
    session,
    surface,
    turn,
    transcript,
    message,
    heard,
    decision,
    post,
)


def _session(number: int, at: float) -> dict[Table, dict[str, Any]]:
    name, said = f"thread-{number}", 2 * number - 1
    where = {"service": SERVICE, "external": name, "agent": AGENT}
    of_turn = {"session": number, "turn": number}
    return {
        delivery: {
            "adapter": f"{SERVICE}:{AGENT}",
            "delivery_id": name,
            "signature": name,
            "headers": {},
            "body": b"{}",
            "received_at": at,
            "state": "done",
        },
        place: {"id": number, "service": SERVICE, "name": name, "title": name, "latest": AGENT},
        session: {
            "id": number,
            "agent": AGENT,
            "place": number,
            "title": name,
            "acp_session_id": f"session-{number}",
            "created_at": at,
            "updated_at": at,
        },
        surface: {"id": number, **where, "session": number, "place": number},
        turn: {
            "id": number,
            "session": number,
            "surface": number,
            "state": "done",
            "prompt": "Please look at the failing tests.",
            "created_at": at,
            "ended_at": at,
        },
        transcript: {
            "id": said,
            "place": number,
            "session": None,
            "turn": None,
            "kind": "message",
            "speaker": "Ann",
            "text": "Please look at the failing tests.",
            "data": {},
            "at": at,
        },
        message: {
            "id": said,
            "place": number,
            "message_id": name,
            "speaker_id": "ann",
            "speaker_kind": "person",
            "files": [],
        },
        heard: {"message": said, **of_turn},
        decision: {
            "place": number,
            "message_id": name,
            "outcome": "done",
            "reason": "mentioned",
            "agents": [AGENT],
            "at": at,
        },
        post: {
            "key": f"turn:{number}",
            **where,
            **of_turn,
            "marker": f"ab-{number}",
            "content": content_row(PostContent(kind="turn", state="done", text=ANSWER)),
            "state": "done",
            "remote_id": str(number),
            "created_at": at,
        },
    }


def _answer(number: int, at: float) -> dict[str, Any]:
    return {
        "id": 2 * number,
        "place": number,
        "session": number,
        "turn": number,
        "kind": "text",
        "speaker": AGENT,
        "text": ANSWER,
        "data": {},
        "at": at,
    }
