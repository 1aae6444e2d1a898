"""Words the view of an ask, the same on every surface; pure."""

from __future__ import annotations

from collections.abc import Iterator

from app.core.ask_view import AskView, ShownFact
from app.markdown.code import fence, span

_LABELS = {
    "command": "Command",
    "path": "Path",
    "host": "Host",
    "file": "Files",
    "input": "Input",
    "address": "Address",
    "quote": "About",
}


def label(fact: ShownFact) -> str:
    """Say what a code block holds."""
    if fact.kind != "change":
        return _LABELS[fact.kind]
    return f"Edit +{fact.added} \N{MINUS SIGN}{fact.removed}"


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
    parts = [fence(view.heading)] if view.heading else []
    for fact in view.facts:
        head = f"{label(fact)} {span(fact.path)}" if fact.path else label(fact)
        code = (fence(text, "diff" if fact.kind == "change" else "") for text in _texts(fact))
        parts += [f"{head}:", *_between(list(code), gap(fact))]
    parts += notes(view)
    if view.link and view.partial:
        parts.append(f"[Show everything]({view.link})")
    return "\n\n".join(parts)


def _texts(fact: ShownFact) -> list[str]:
    return [text for text in (fact.text, fact.tail) if text]


def _between(blocks: list[str], words: str) -> list[str]:
    return [*blocks[:1], *([words] if words else []), *blocks[1:]]
