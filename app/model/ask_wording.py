"""Words an ask, its options and its decision, the same on every surface; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.markdown.writing import fence, span
from app.model.text import conceal, reveal, reveal_line
from app.model.updates import Ask, AskView, GrantExtent, GrantScope, ShownFact

MINUS = "\N{MINUS SIGN}"
NAMED_OPTIONS = 10
"""How many choices a sentence names: what is read at a glance."""
WHICH = "Which one? Answer {names}."
SEVERAL_OPEN = "{number} questions are open. Answer the oldest with the name of an option: {names}."

TOO_MANY_OPEN = (
    "{most} of your questions are open, the most at once. Wait for an answer by asking one of them "
    "again with the same words, or go on without."
)
TOO_LONG = "at most {limit} characters: people cannot review more"
ASKED_FOR_OTHERS = "{agent}: {title}"
"""The title of an ask that another agent shows for the one that asks."""
BRIDGE = "the bridge"
"""Who answered when an ask answers itself."""
CONTINUE = "Continue"
STOP = "Stop"
DO_IT = "Yes, do it"
DROP_IT = "No, leave it"
GIVE_TO = "Give it to {agent}"
LEAVE_IT = "Leave it"
ALWAYS_HERE = "Always allow {what} in this thread"
ALWAYS_EVERYTHING = "Always allow all edits in the workspace of this thread"
LABEL_CHARACTERS = 75
"""Length of a label that every platform but GitHub shows whole: Slack's buttons have the least."""
PHRASES = {
    "allow_once": (re.compile(r"yes(, proceed)?", re.IGNORECASE), "Allow"),
    "reject_once": (
        re.compile(r"no(,? and tell \w+ what to do .*)?", re.IGNORECASE),
        "Reject",
    ),
}
"""Phrases of agents' terminals that mean no more than yes or no, by the option's kind."""
ENDED_BEFORE = "this no longer holds: it has ended, or someone took it back"
ALREADY_ANSWERED = "{by} already answered this"
RESTARTED = "the bridge restarted before this was answered; the agent asks again if needed"
TIME_PASSED = "the time to answer this has passed"
NOT_NEEDED = "this is no longer needed"
WITHDRAWN = "the agent took this back before it was answered"

_LABELS = {
    "command": "Command",
    "path": "Path",
    "host": "Host",
    "file": "Files",
    "input": "Input",
    "address": "Address",
    "quote": "About",
}


_DOING = {
    "read": "reading",
    "edit": "editing",
    "delete": "deleting",
    "move": "moving",
    "search": "searching",
}
_EXACTLY = {"command": "exactly this command", "call": "exactly this call"}
_ACTS = {
    "edit": "edit",
    "delete": "delete",
    "move": "move",
    "read": "read",
    "fetch": "fetch",
    "execute": "run this command",
}
_TITLED = re.compile(
    r"(?:(?:edit|write|create|update|run|execute|read|delete|fetch|bash|shell)\b:?\s*)?(.*)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """What an agent wants to do, in one line."""

    words: str
    subject: str = ""
    """What the words are about, which the agent wrote: shown as code."""
    amount: str = ""
    """How much would change."""


def sentence(view: AskView) -> Sentence | None:
    """Say what an agent wants, where its title says no more than that; else None."""
    if not view.agent or not view.facts:
        return None
    act, fact = _ACTS.get(view.act), view.facts[0]
    same = fact.kind == ("command" if view.act == "execute" else "change" if fact.path else "path")
    if act is None or not same or len(view.facts) > 1 or "\n" in fact.path:
        return None
    subject = fact.path or fact.text
    said = _TITLED.fullmatch(conceal(view.title).strip())
    bare = said[1].strip().strip("`").strip() if said else ""
    if bare not in {conceal(subject).strip(), ""}:
        return None
    if view.act == "execute":
        return Sentence(f"{view.agent} wants to {act}")
    if fact.kind != "change":
        return Sentence(f"{view.agent} wants to {act}", subject) if "\n" not in subject else None
    act = "create" if fact.is_new else act
    less = f" {MINUS}{fact.removed}" if fact.removed or not fact.is_new else ""
    return Sentence(f"{view.agent} wants to {act}", subject, f"+{fact.added}{less}")


def ask_back(labels: Sequence[str], asks: int) -> str:
    """Ask what a short answer means."""
    names = [span(reveal_line(label)) for label in labels]
    if asks > 1:
        return SEVERAL_OPEN.format(number=asks, names=", ".join(names))
    return WHICH.format(names=", ".join(f"{at} for {name}" for at, name in enumerate(names, 1)))


def offer_grant(scope: GrantScope) -> str:
    """Name an "always" by all that it covers, or by what the ask shows, where that is too long."""
    if scope.extent == "workspace":
        return ALWAYS_EVERYTHING
    doing = f"{_DOING[scope.kind]} " if scope.extent == "paths" else ""
    name = ALWAYS_HERE.format(what=f"{doing}`{scope.subject}`")
    if (
        scope.extent != "call"
        and len(name) <= LABEL_CHARACTERS
        and "`" not in scope.subject
        and reveal_line(scope.subject) == scope.subject
    ):
        return name
    return ALWAYS_HERE.format(what=_EXACTLY.get(scope.extent, f"{doing}exactly these files"))


def granted(kind: str, extent: GrantExtent, subject: str) -> str:
    """Say what a grant covers, on one line."""
    words, exact = granted_parts(kind, extent, subject)
    return " ".join(filter(None, (words, ", ".join(map(span, exact)))))


def granted_parts(kind: str, extent: GrantExtent, subject: str) -> tuple[str, list[str]]:
    """Say what a grant covers: words, and what they are about, exactly."""
    match extent:
        case "workspace":
            return "all edits in the workspace", []
        case "paths":
            return _DOING[kind], [reveal(path) for path in subject.split("\n")]
        case _:
            return "", [reveal(subject)]


def ask_head(view: AskView) -> str:
    """Write the sentence of an ask as Markdown; empty if its title and facts say it."""
    said = sentence(view)
    if said is None:
        return ""
    amount = f" ({said.amount})" if said.amount else ""
    return f"{said.words} {span(said.subject)}{amount}" if said.subject else f"{said.words}:"


def label(fact: ShownFact) -> str:
    """Say what a code block holds."""
    if fact.kind != "change":
        return _LABELS[fact.kind]
    return f"Edit +{fact.added} {MINUS}{fact.removed}"


def gap(fact: ShownFact) -> str:
    """Say how much of a fact is not shown, between its beginning and its end."""
    if not fact.left:
        return ""
    if fact.kind == "change":
        return f"{fact.left} more {'line' if fact.left == 1 else 'lines'} not shown here."
    return f"{fact.left} characters not shown here. SHA-256 of the whole: {fact.digest}"


def notes(view: AskView, *, on_page: bool = False) -> Iterator[str]:
    """List what people must know about an ask besides its facts."""
    if view.unsaid == "change":
        yield "The agent did not say what it will change."
    if view.unsaid == "call":
        yield "The agent did not say exactly what it will do."
    if view.secret:
        yield "A known secret is hidden here and shown as [secret]."
    if view.cut and not on_page:
        yield "This is too long to show here. Allow it on the bridge's page."


def markdown(view: AskView) -> str:
    """Write an ask for a service that reads Markdown; everything the agent wrote is code."""
    head = ask_head(view)
    parts = [f"**{view.agent}** asks:"] if view.agent and not head else []
    parts += [head] if head else [fence(view.heading)] if view.heading else []
    for fact in view.facts:
        about = f"{label(fact)} {span(fact.path)}:" if fact.path else f"{label(fact)}:"
        code = (fence(text, "diff" if fact.kind == "change" else "") for text in _texts(fact))
        shown = [] if fact.kind == "path" and head else [*_between(list(code), gap(fact))]
        parts += shown if head else [about, *shown]
    parts += notes(view)
    if view.link and view.partial:
        parts.append(f"[Show everything]({view.link})")
    return "\n\n".join(parts)


def _texts(fact: ShownFact) -> list[str]:
    return [text for text in (fact.text, fact.tail) if text]


def _between(blocks: list[str], words: str) -> list[str]:
    return [*blocks[:1], *([words] if words else []), *blocks[1:]]


def remind(ask: Ask) -> str:
    """Ask again for one of many choices, the last of which is none."""
    *names, last = (option.id for option in ask.options)
    more = ", ..." if len(names) > NAMED_OPTIONS else ""
    return f"{ask.title} Say {', '.join(names[:NAMED_OPTIONS])}{more} or {last}."


def cut(left: int) -> str:
    """Say how many characters are left out."""
    return f"[… {left} more characters]"


def closed(ask: Ask) -> str:
    """Say why an ask can no longer be answered."""
    match ask.state:
        case "answered":
            return ALREADY_ANSWERED.format(by=ask.answered_by)
        case "lost":
            return RESTARTED
        case "withdrawn":
            return WITHDRAWN
        case "expired" | "open":
            return TIME_PASSED
        case _:
            return NOT_NEEDED


def decision(decided: object) -> str:
    """Say who or what decided on a call, in a few words; empty if there was nothing to decide."""
    if not isinstance(decided, Mapping):
        return ""
    allowed = decided.get("allowed")
    verb = "answered" if allowed is None else "allowed" if allowed else "rejected"
    match decided.get("how"):
        case "person":
            answer = f": {decided.get('answer')}" if allowed is None else ""
            return f"{verb} by {decided.get('who')}{answer}"
        case "grant":
            return f"allowed by {decided.get('who')} for this thread: {decided.get('what')}"
        case "session":  # in rows of earlier releases
            return f"allowed by {decided.get('who')} for this session"
        case "rule":
            return f"{verb} by rule `{decided.get('rule')}`"
        case "unanswered":
            return "nobody answered"
        case "withdrawn":
            return "withdrawn by the agent"
    return ""
