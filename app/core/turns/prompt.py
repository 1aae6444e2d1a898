"""Composes what an agent is told; pure.

The first line is always the bridge's. Only the words of the person who asked are instruction:
everything else stands in a data block, which nothing inside it can end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from app.core.keys import SessionKey
from app.core.types import Entry, Message
from app.core.updates import Ask


@dataclass(frozen=True, slots=True)
class Asked:
    """What a prompt is made of."""

    surface: SessionKey
    messages: Sequence[Message]
    link: str = ""
    files: Sequence[PurePath] = ()
    """What came with the messages, where the agent finds it."""
    history: Sequence[Entry] = ()
    """The conversation so far, when the agent itself could not bring it back."""
    continued: bool = False
    """Whether the words may have reached the agent before."""
    answers: Sequence[Ask] = ()
    """What people answered after the agent had been parked."""


def compose(asked: Asked) -> str:
    """Write the prompt of a turn."""
    parts = [_first_line(asked)]
    if asked.history:
        parts.append(_recalled(asked.history))
    parts.extend(f"[Attached: {_one_line(str(file))}]" for file in asked.files)
    parts.extend(_answered(ask) for ask in asked.answers)
    words = _words(asked.messages)
    parts.append(_quoted(words) if asked.continued else words)
    return "\n".join(parts)


def _first_line(asked: Asked) -> str:
    names = list(dict.fromkeys(message.speaker.name for message in asked.messages))
    where = f"{asked.surface.service}, {asked.surface}"
    link = f", {asked.link}" if asked.link else ""
    line = f"[{_one_line(' and '.join(names))} on {where}{link}]"
    if asked.answers:
        return (
            f"{line[:-1]}: continuation. You were parked while you waited for people, who have "
            "answered since. If you still need what you asked for, ask for exactly the same again: "
            "it is answered at once, as said below. Carry on with the words quoted at the end and "
            "do nothing twice.]"
        )
    if asked.continued:
        return (
            f"{line[:-1]}: continuation. You were cut off while working on the words quoted below; "
            "they may not have reached you. Carry on and do nothing twice.]"
        )
    return line


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
            '<data from="the transcript of this conversation">',
            said.replace("</data", "<\\/data"),
            "</data>",
        )
    )


def _one_line(text: str) -> str:
    return " ".join(text.replace("[", "(").replace("]", ")").split())
