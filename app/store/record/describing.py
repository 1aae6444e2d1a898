"""Tells of a turn what its rows in the record say: where it was, who asked, what a call did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from posixpath import basename
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select

from app.model.calls import call_of
from app.model.updates import ToolUpdate
from app.store.tables import (
    checkout,
    delegation,
    heard,
    message,
    place,
    session,
    transcript,
    turn,
)

_WHERE = (
    select(session.c.agent, place.c.service, place.c.name, place.c.repository)
    .join(place, place.c.id == session.c.place)
    .where(session.c.id == bindparam("of"))
)
_CLONE = (
    select(checkout.c.name)
    .where(checkout.c.session == bindparam("of"))
    .order_by(checkout.c.number.desc())
    .limit(1)
)
_PERSON = (
    select(
        delegation.c.person_name.label("name"),
        delegation.c.person_id.label("person"),
        place.c.service,
    )
    .join(place, place.c.id == delegation.c.root_place)
    .where(delegation.c.turn == bindparam("of"))
)
_SPEAKERS = (
    select(
        transcript.c.speaker.label("name"),
        message.c.speaker_id.label("person"),
        place.c.service,
    )
    .join(message, message.c.id == transcript.c.id)
    .join(heard, heard.c.message == message.c.id)
    .join(place, place.c.id == message.c.place)
    .where(heard.c.turn == bindparam("of"))
    .order_by(message.c.id)
)
_PREDECESSOR = select(turn.c.id).where(
    turn.c.session == bindparam("within"), turn.c.successor == bindparam("of")
)
LONGEST_CHAIN = 100
"""Turns that continue one another and are looked through for the words that began it all."""


def describe(connection: Connection, session_id: int | None, turn_id: int | None) -> dict[str, Any]:
    """Tell the agent, the place, the repository and who asked, as an event has them."""
    found: dict[str, Any] = {}
    where = connection.execute(_WHERE, {"of": session_id}).first()
    if where is not None:
        clone = connection.execute(_CLONE, {"of": session_id}).scalar()
        found = {
            "agent": where.agent,
            "place": f"{where.service}:{where.name}",
            "repository": clone or where.repository or "",
        }
    if session_id is not None and turn_id is not None:
        people = _find_people(connection, session_id, turn_id)
        accounts = dict.fromkeys(account(each.service, each.person) for each in people)
        found["asked_by"] = ", ".join(dict.fromkeys(each.name for each in people if each.name))
        found["asked_id"] = " ".join(filter(None, accounts))
    return found


def account(service: str, person: str) -> str:
    """Name a person as a service knows them; empty if it does not."""
    return f"{service}:{person}" if person else ""


def _find_people(connection: Connection, session_id: int, turn_id: int) -> Sequence[Any]:
    """Find whose words a turn began with, or the turn that it continues."""
    number: int | None = turn_id
    for _ in range(LONGEST_CHAIN):
        for query in (_PERSON, _SPEAKERS):
            people: Sequence[Any] = connection.execute(query, {"of": number}).all()
            if people:
                return people
        before = {"within": session_id, "of": number}
        number = connection.execute(_PREDECESSOR, before).scalar()
        if number is None:
            break
    return ()


def describe_call(row: Row[Any]) -> str:
    """Say what a call did: its title, and the exact command or files unless that has them."""
    data = row.data
    said = ToolUpdate(
        str(data.get("call")),
        kind=data.get("kind"),
        input=data.get("input"),
        locations=tuple(data.get("locations") or ()),
    )
    call, title = call_of(said), row.text or str(data.get("title") or data.get("kind") or "")
    exact = [command for command in call.commands if command not in title]
    files = [path for path in call.paths if basename(path) not in title]
    return "\n".join((title, *(exact if call.commands else files)))


def name_rule(decided: Mapping[str, Any]) -> str:
    """Name what decided on a call, if no person was asked."""
    match decided.get("how"):
        case "rule":
            return str(decided.get("rule") or "")
        case "grant":
            return f"grant {decided.get('grant')}"
        case "person" | None:
            return ""
        case other:
            return str(other)
