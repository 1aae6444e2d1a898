"""Composes the prompts that agents get, and their system prompts; pure.

The first line is always the bridge's. Only the request itself and what the operator adds are
instructions: everything else is in a data block, which nothing inside it can end. An agent is told
each part of its system prompt once per conversation, and again only when the part changed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from app.markdown.hidden import strip
from app.model.keys import SessionKey
from app.model.steering import MAYBE_KNOWN, mark, strip_marks
from app.model.types import Entry, Message
from app.model.updates import Ask, ToolUpdate
from app.model.workspaces import WorkspaceView

NOT_READ = "(Earlier messages here could not be read.)"
_READING = frozenset({"read", "search", "fetch", "execute", "other"})
"""Kinds of calls that can bring text which no person here wrote."""
OUTGOING = (
    "Put files for the user, such as a report or a picture, into the folder {}; everything there "
    "is sent when your turn ends."
)

ALL_KNOWN = "(You have read all that was said here. Go on with it.)"

_COMMAND = re.compile(r"(?:@[\w-]+[,:]?\s+)?(/[\w.:-]+(?: [^\n]*)?)")


@dataclass(frozen=True, slots=True)
class QuotedMessage:
    """Something that another speaker said."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class TurnPrompt:
    """What a prompt is made of."""

    surface: SessionKey
    messages: Sequence[Message]
    link: str = ""
    files: Sequence[PurePath] = ()
    """The attachments, at the paths where the agent finds them; only names on another machine."""
    workspace: WorkspaceView | None = None
    """Where the agent works; set only when its conversation begins."""
    outgoing: PurePath | None = None
    """Where the agent puts files for people; set only when its conversation begins."""
    system_prompt: str = ""
    """Who the agent is and how to work here, as far as it has not been told yet."""
    place_prompt: str = ""
    """What the operator adds in this place; set only when a conversation begins."""
    own: Sequence[tuple[str, str]] = ()
    """What the agent itself wrote elsewhere, each with its origin."""
    said: Sequence[QuotedMessage] = ()
    """What others said here and the agent has not been told yet."""
    notes: Sequence[str] = ()
    """What the bridge tells the agent about the work of others."""
    data: Sequence[tuple[str, str]] = ()
    """What belongs to these notes, each with its origin."""
    history: Sequence[Entry] = ()
    """The conversation so far, if the agent could not restore it."""
    continued: bool = False
    """Whether the request may have reached the agent before."""
    answers: Sequence[Ask] = ()
    """What people answered after the agent had been parked."""


def compose(asked: TurnPrompt) -> str:
    """Write the prompt of a turn."""
    parts = [_first_line(asked)]
    if asked.system_prompt:
        parts.append(asked.system_prompt)
    if asked.place_prompt:
        parts.append(f"[The operator of this bridge says: {_one_line(asked.place_prompt)}]")
    parts.extend(_block(origin, text) for origin, text in asked.own)
    if asked.history:
        parts.append(_format_history(asked.history))
    if asked.said:
        lines = (f"{_one_line(each.name)}: {each.text}" for each in asked.said)
        parts.append(_data("messages from others that you have not seen yet", "\n".join(lines)))
    parts.extend(f"[{_one_line(note)}]" for note in asked.notes)
    parts.extend(_data(_MARKS.sub("_", origin), text) for origin, text in asked.data)
    parts.extend(
        _data("what came with the message", message.context)
        for message in asked.messages
        if message.context
    )
    parts.extend(f"[Attached: {_one_line(str(file))}]" for file in asked.files)
    parts.extend(_format_answer(ask) for ask in asked.answers)
    words = _words(asked.messages)
    if (command := _COMMAND.fullmatch(words)) and not asked.continued:
        # An agent recognises its own commands only at the beginning of a prompt.
        begins = asked.workspace is not None
        return "\n".join([command[1], *parts[0 if begins else 1 :]])
    parts.append(_quote(words) if asked.continued else words)
    return "\n".join(parts)


def compose_steered(surface: SessionKey, message: Message, files: Sequence[PurePath]) -> str:
    """Write what goes into a running turn; it ends with its mark."""
    asked = TurnPrompt(surface, [message], files=files)
    head = _first_line(asked).removesuffix("]")
    parts = [f"{head}: said while you work.]"]
    if message.context:
        parts.append(_data("what came with the message", message.context))
    parts.extend(f"[Attached: {_one_line(str(file))}]" for file in files)
    return "\n".join((*parts, strip_marks(message.text), mark(message.number)))


def holds_words_of_others(prompt: str) -> bool:
    """Tell whether a prompt brought more than words of people who may direct the agent."""
    return prompt.count('<data from="') > prompt.count('<data from="your own ')


def brings_words(tool: ToolUpdate, own: Collection[str]) -> bool:
    """Tell whether a tool call can bring words of others into a conversation: a file, a page.

    The bridge knows what its own tools bring; those named in `own` bring the agent's own words.
    """
    if tool.kind in {None, "other"}:
        return not any(name in (tool.title or "") for name in own)
    return tool.kind in _READING


def _first_line(asked: TurnPrompt) -> str:
    names = list(dict.fromkeys(message.speaker.name for message in asked.messages))
    where = f"{asked.surface.service}, {asked.surface}"
    pointed = dict.fromkeys(message.pointed for message in asked.messages)
    more = "".join(f", {_one_line(each)}" for each in filter(None, (asked.link, *pointed)))
    line = f"{_one_line(' and '.join(names))} on {where}{more}"
    if asked.answers:
        line += (
            ": continuation. You were parked while you waited for an answer. The answer is below. "
            "If you still need what you asked for, send exactly the same request again: it gets "
            "this answer at once. Continue with the message quoted at the end. Do not repeat "
            "finished work."
        )
    elif asked.continued:
        line += (
            ": continuation. You were interrupted while working on the message quoted below, "
            "which may not have reached you. Continue with it. Do not repeat finished work."
        )
    if asked.workspace is not None:
        line += f"{'' if line.endswith('.') else '.'} {_one_line(_workspace(asked.workspace))}"
    if asked.outgoing is not None:
        line += (
            f"{'' if line.endswith('.') else '.'} {OUTGOING.format(_one_line(str(asked.outgoing)))}"
        )
    return f"[{line}]"


def _workspace(view: WorkspaceView) -> str:
    """Describe the workspace and what happens to the work in it."""
    match view.kind:
        case "empty":
            return (
                "Your folder is yours alone and started empty: no repository is set for this place."
            )
        case "remote":
            return (
                "You work on your own machine with your own files: the bridge gives you no "
                "repository and ships none of your changes."
            )
        case "folder":
            return (
                f"You work directly in the folder {view.name}, not in a copy. Its `.git` is "
                "read-only: leave commits to the user."
            )
        case "clone" if not view.branch:
            return f"Your folder is a clone of {view.name} for reading; you cannot push from it."
        case "clone":
            return (
                f"Your folder is a clone of {view.name} on the branch {view.branch}. At the end of "
                "your turn the bridge commits, pushes and proposes your changes; you may also "
                "commit and push to that branch yourself."
            )


def _format_answer(ask: Ask) -> str:
    """Tell the answer, together with exactly what was asked."""
    asked = "\n".join(filter(None, (ask.title, ask.subject if ask.subject != ask.title else "")))
    who, answer = _one_line(ask.answered_by or ""), _one_line(ask.answer_name)
    return "\n".join(
        (
            f"[{who} answered: {answer}. Your request follows as data:]",
            '<data from="your own request">',
            asked.replace("</data", "<\\/data"),
            "</data>",
        )
    )


def _words(messages: Sequence[Message]) -> str:
    if not messages:
        return ALL_KNOWN
    if len(messages) == 1:
        return _marked(messages[0])
    return "\n".join(f"[{_one_line(each.speaker.name)}:]\n{_marked(each)}" for each in messages)


def _marked(message: Message) -> str:
    """Return what was said; what went into a turn before carries its mark again."""
    said = strip_marks(message.text)
    return f"{said}\n{mark(message.number)}" if message.steered in MAYBE_KNOWN else said


def _quote(words: str) -> str:
    return "\n".join(f"> {line}" for line in words.splitlines())


def _format_history(history: Sequence[Entry]) -> str:
    said = "\n".join(f"{_one_line(entry.speaker) or 'you'}: {entry.text}" for entry in history)
    return "\n".join(
        (
            "[Your record of this conversation was lost. The transcript follows as data:]",
            _block("the transcript of this conversation", said),
        )
    )


def _data(origin: str, text: str) -> str:
    """Mark other people's text as data, without the parts that only an agent would see."""
    seen = strip(text)
    note = f"; hidden parts removed: {seen.hidden}" if seen.hidden else ""
    return _block(f"{origin}{note}", seen.text)


def _block(origin: str, text: str) -> str:
    return f'<data from="{origin}">\n{_END.sub(_BROKEN, text)}\n</data>'


_END = re.compile("</data", re.IGNORECASE)
_MARKS = re.compile(r'["<>\x00-\x1f\x7f-\x9f\u2028\u2029]')
_BROKEN = r"<\\/data"


def _one_line(text: str) -> str:
    return " ".join(text.replace("[", "(").replace("]", ")").split())


OPENING = '<instructions from="the operator of this bridge">'
CLOSING = "</instructions>"
HEADINGS = {
    "base": "Who you are",
    "soul": "Your character",
    "agents": "How to work here",
    "tools": "Your tools",
    "user": "Who you work for",
    "memory": "What you remember",
    "colleagues": "Your colleagues",
}
"""The parts in their order."""

_CHANGED = "[Your instructions changed. These parts replace what you were told before"
_GONE = "These parts no longer apply: {parts}"
_CLOSINGS = re.compile("</(?=data|instructions)", re.IGNORECASE)
_BROKEN_CLOSING = r"<\\/"


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """What an agent is told at the beginning of each conversation; empty parts are left out."""

    base: str = ""
    soul: str = ""
    agents: str = ""
    tools: str = ""
    user: str = ""
    memory: str = ""
    colleagues: str = ""

    def parts(self) -> dict[str, str]:
        """Return the parts that have a text, each with its heading, in order."""
        texts = {
            "base": self.base,
            "soul": self.soul,
            "agents": self.agents,
            "tools": self.tools,
            "user": self.user,
            "memory": strip(self.memory).text,
            "colleagues": self.colleagues,
        }
        found = {name: _CLOSINGS.sub(_BROKEN_CLOSING, text.strip()) for name, text in texts.items()}
        if found["memory"]:
            found["memory"] = f'<data from="your own notes">\n{found["memory"]}\n</data>'
        return {name: f"# {HEADINGS[name]}\n\n{text}" for name, text in found.items() if text}

    def digests(self) -> dict[str, str]:
        """Return a short value for each part that changes with its text."""
        return {
            name: hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]
            for name, text in self.parts().items()
        }


def write_system_prompt(system: SystemPrompt) -> str:
    """Write the system part for an agent that takes a system prompt."""
    return "\n\n".join(system.parts().values())


def write_for_prompt(system: SystemPrompt, told: Mapping[str, str] | None) -> str:
    """Write what an agent has not been told yet, to be part of a prompt; empty if nothing.

    `told` are the digests of what it was told in this conversation, None if it was told nothing.
    """
    parts, now = system.parts(), system.digests()
    if not told:
        return _instruct(parts) if parts else ""
    changed = {name: text for name, text in parts.items() if told.get(name) != now[name]}
    gone = [HEADINGS[name] for name in HEADINGS if name in told and name not in now]
    if not changed and not gone:
        return ""
    note = f"{_CHANGED}." if changed else "[Your instructions changed."
    if gone:
        note += f" {_GONE.format(parts=', '.join(gone))}."
    return "\n".join(filter(None, (f"{note}]", _instruct(changed) if changed else "")))


def _instruct(parts: Mapping[str, str]) -> str:
    text = "\n\n".join(parts.values())
    return f"{OPENING}\n{text}\n{CLOSING}"
