"""Writes the messages of commits and the texts of pull requests; pure."""

from __future__ import annotations

import re

from app.model import repository_wording as wording
from app.model.keys import SessionKey
from app.model.types import Speaker
from app.model.workspaces import Work

SUBJECT_CHARACTERS = 72
"""Where git, forges and most tools fold the first line of a message."""
SESSION_TRAILER = "Agent-Bridge-Session"


def commit_message(work: Work, session: SessionKey, agent: str) -> str:
    """Write the message of what an agent left uncommitted: subject, words, who asked, session."""
    people = {each.speaker.id: each.speaker for each in work.messages}
    words = "\n\n".join(one_text(each.text) for each in work.messages).strip()
    body = [] if not words or words == subject(work, agent) else [words]
    trailers = [f"Co-authored-by: {co_author(who)}" for who in people.values()]
    return "\n\n".join(
        [
            subject(work, agent),
            *body,
            "\n".join([*trailers, f"{SESSION_TRAILER}: {session}"]),
        ]
    )


def subject(work: Work, agent: str) -> str:
    """Write one line about a turn: its title, else the first words that were said."""
    said = work.messages[0].text if work.messages else ""
    for text in (work.title, said):
        line = one_text(text).partition("\n")[0].strip()
        if line:
            short = len(line) <= SUBJECT_CHARACTERS
            return line if short else line[: SUBJECT_CHARACTERS - 1].rstrip() + "…"
    return wording.NO_TITLE.format(agent=agent)


def proposal_body(work: Work, session: SessionKey, agent: str) -> str:
    """Say in a pull request what its agent says, who asked it, and where."""
    names = " and ".join(dict.fromkeys(each.speaker.name for each in work.messages))
    where = work.link or str(session)
    said = wording.PROPOSED.format(people=names or wording.SOMEONE, agent=agent, where=where)
    return "\n\n".join(filter(None, (work.body, said)))


def co_author(who: Speaker) -> str:
    """Name a person as a co-author; without an e-mail address, a placeholder is used."""
    name = re.sub(r"[<>\x00-\x1f\x7f]", "", who.name).strip() or "someone"
    address = re.sub(r"[^A-Za-z0-9@.+_-]", "-", who.id) or "someone"
    return f"{name} <{address if '@' in address else f'{address}@noreply.agent-bridge.invalid'}>"


def one_text(text: str) -> str:
    """Remove control characters, so that nothing in a text ends a line or a message."""
    lines = re.sub(r"[\x00-\x09\x0b-\x1f\x7f]", " ", text.replace("\r\n", "\n")).splitlines()
    return "\n".join(line.rstrip() for line in lines).strip()
