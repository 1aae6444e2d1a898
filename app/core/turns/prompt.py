"""Composes what an agent is told; pure.

The first line is always the bridge's. Only the words of the person who asked, and what the operator
adds, are instruction: everything else stands in a data block, which nothing inside it can end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from app.core.keys import SessionKey
from app.core.types import Entry, Message
from app.core.updates import Ask
from app.core.workspaces import WorkspaceView
from app.markdown.hidden import strip

OUTGOING = (
    "A file that the people here shall get, such as a report or a picture, goes into the folder "
    "{}: what lies there when your turn ends is sent to them."
)


@dataclass(frozen=True, slots=True)
class Said:
    """Something that somebody else said."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What a prompt is made of."""

    surface: SessionKey
    messages: Sequence[Message]
    link: str = ""
    files: Sequence[PurePath] = ()
    """What came with the messages, where the agent finds it."""
    workspace: WorkspaceView | None = None
    """Where the agent works, when its process has just begun to."""
    outgoing: PurePath | None = None
    """Where the agent lays what people shall get, when its conversation begins."""
    place_prompt: str = ""
    """What the operator adds in this place, when a conversation begins."""
    said: Sequence[Said] = ()
    """What others said here, as far as the agent has not been told."""
    history: Sequence[Entry] = ()
    """The conversation so far, when the agent itself could not bring it back."""
    continued: bool = False
    """Whether the words may have reached the agent before."""
    answers: Sequence[Ask] = ()
    """What people answered after the agent had been parked."""


def compose(asked: Asked) -> str:
    """Write the prompt of a turn."""
    parts = [_first_line(asked)]
    if asked.place_prompt:
        parts.append(f"[The operator of this bridge says: {_one_line(asked.place_prompt)}]")
    if asked.history:
        parts.append(_recalled(asked.history))
    if asked.said:
        lines = (f"{_one_line(each.name)}: {each.text}" for each in asked.said)
        parts.append(_data("what others said here since you were last told", "\n".join(lines)))
    parts.extend(
        _data("what came with the message", message.context)
        for message in asked.messages
        if message.context
    )
    parts.extend(f"[Attached: {_one_line(str(file))}]" for file in asked.files)
    parts.extend(_answered(ask) for ask in asked.answers)
    words = _words(asked.messages)
    parts.append(_quoted(words) if asked.continued else words)
    return "\n".join(parts)


def _first_line(asked: Asked) -> str:
    names = list(dict.fromkeys(message.speaker.name for message in asked.messages))
    where = f"{asked.surface.service}, {asked.surface}"
    pointed = dict.fromkeys(message.pointed for message in asked.messages)
    more = "".join(f", {_one_line(each)}" for each in filter(None, (asked.link, *pointed)))
    line = f"{_one_line(' and '.join(names))} on {where}{more}"
    if asked.answers:
        line += (
            ": continuation. You were parked while you waited for people, who have answered since. "
            "If you still need what you asked for, ask for exactly the same again: it is answered "
            "at once, as said below. Carry on with the words quoted at the end and do nothing "
            "twice."
        )
    elif asked.continued:
        line += (
            ": continuation. You were cut off while working on the words quoted below; "
            "they may not have reached you. Carry on and do nothing twice."
        )
    if asked.workspace is not None:
        line += f"{'' if line.endswith('.') else '.'} {_one_line(_workspace(asked.workspace))}"
    if asked.outgoing is not None:
        line += (
            f"{'' if line.endswith('.') else '.'} {OUTGOING.format(_one_line(str(asked.outgoing)))}"
        )
    return f"[{line}]"


def _workspace(view: WorkspaceView) -> str:
    """Tell an agent where it is and what becomes of its work."""
    match view.kind:
        case "empty":
            return "Your folder is your own and began empty: no repository is set for this place."
        case "folder":
            return f"You work in the folder {view.name} itself, not in a copy."
        case "clone" if not view.branch:
            return f"Your folder is a clone of {view.name} to read; nothing can be pushed from it."
        case "clone":
            return (
                f"Your folder is a clone of {view.name} on the branch {view.branch}. What you "
                "change is committed, pushed and proposed for you at the end of the turn; you may "
                "commit, and push to that branch, yourself."
            )


def _answered(ask: Ask) -> str:
    """Tell the answer, beside exactly what was asked."""
    asked = "\n".join(filter(None, (ask.title, ask.subject if ask.subject != ask.title else "")))
    who, answer = _one_line(ask.answered_by or ""), _one_line(ask.answer_name)
    return "\n".join(
        (
            f"[{who} answered: {answer}. What you had asked, as data:]",
            '<data from="your own request">',
            asked.replace("</data", "<\\/data"),
            "</data>",
        )
    )


def _words(messages: Sequence[Message]) -> str:
    if len(messages) == 1:
        return messages[0].text
    return "\n".join(f"[{_one_line(each.speaker.name)}:]\n{each.text}" for each in messages)


def _quoted(words: str) -> str:
    return "\n".join(f"> {line}" for line in words.splitlines())


def _recalled(history: Sequence[Entry]) -> str:
    said = "\n".join(f"{_one_line(entry.speaker) or 'you'}: {entry.text}" for entry in history)
    return "\n".join(
        (
            "[Your own record of this conversation is gone. What was said before, as data:]",
            _block("the transcript of this conversation", said),
        )
    )


def _data(origin: str, text: str) -> str:
    """Mark the text of others as data, without what only an agent would see of it."""
    seen = strip(text)
    note = f"; {seen.hidden} hidden parts were taken out" if seen.hidden else ""
    return _block(f"{origin}{note}", seen.text)


def _block(origin: str, text: str) -> str:
    return f'<data from="{origin}">\n{_END.sub(_BROKEN, text)}\n</data>'


_END = re.compile("</data", re.IGNORECASE)
_BROKEN = r"<\\/data"


def _one_line(text: str) -> str:
    return " ".join(text.replace("[", "(").replace("]", ")").split())
