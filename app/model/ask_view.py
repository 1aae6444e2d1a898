"""Exact subject of an ask, and the neutral view of it that every service renders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from app.model.visible import conceal, reveal

FactKind = Literal["command", "path", "host", "file", "input", "change", "address", "quote"]
"""A `change` is a file before and after; an `input` is tool input that is none of the others; a
`quote` is text from others that is not part of what would be done."""


@dataclass(frozen=True, slots=True)
class AskFact:
    """One thing that an ask is about, exactly as it would run."""

    kind: FactKind
    text: str
    """Of a change: the new text."""
    path: str = ""
    """Of a change: the file."""
    old: str | None = None
    """Of a change: the text before; None if there was no file."""


@dataclass(frozen=True, slots=True)
class ShownFact:
    """A fact as people see it: revealed, without secrets, whole or in part."""

    kind: FactKind
    text: str
    """Of a change: its first lines, each with `+`, `-` or a space before it."""
    tail: str = ""
    """The end of what is shown in part."""
    left: int = 0
    """How much is not shown: characters, of a change lines."""
    digest: str = ""
    """The beginning of the SHA-256 of a partly shown text, in its shown form."""
    path: str = ""
    added: int = 0
    removed: int = 0
    is_new: bool = False
    """Of a change: whether there was no such file."""


@dataclass(frozen=True, slots=True)
class AskView:
    """An ask as people see it; services render it and read nothing else."""

    title: str
    facts: tuple[ShownFact, ...] = ()
    secret: bool = False
    """Whether a known secret is hidden in it."""
    unsaid: Literal["", "call", "change"] = ""
    """What the agent did not say: what it does at all, or what it changes."""
    link: str = ""
    """Where the page shows it whole; empty if only this machine could open that."""
    agent: str = ""
    """What people call the agent that asks; empty if the title is a whole sentence."""
    act: str = ""
    """The kind of tool call it is about, where that is certain."""

    @property
    def cut(self) -> bool:
        """Whether something that would run is not shown whole, so it cannot be allowed here."""
        return any(fact.left and fact.kind not in {"change", "quote"} for fact in self.facts)

    @property
    def partial(self) -> bool:
        """Whether the page may show more of it."""
        return any(fact.left or fact.kind == "change" for fact in self.facts)

    @property
    def heading(self) -> str:
        """The title, unless the only fact says the same."""
        said = [conceal(fact.text).strip() for fact in self.facts]
        return "" if said == [conceal(self.title)] else self.title

    def map(self, change: Callable[[str], str]) -> AskView:
        """Change all the words in it."""
        return replace(
            self,
            title=change(self.title),
            facts=tuple(
                replace(
                    fact, text=change(fact.text), tail=change(fact.tail), path=change(fact.path)
                )
                for fact in self.facts
            ),
        )


def view_from(stored: Mapping[str, Any]) -> AskView:
    """Read a view that was stored as JSON."""
    return AskView(**{**stored, "facts": tuple(ShownFact(**fact) for fact in stored["facts"])})


def kept_view(text: str, data: Mapping[str, Any]) -> AskView:
    """Read the view of an ask from a row of the transcript.

    Rows of earlier releases have its text, and what the text leaves out.
    """
    if (stored := data.get("view")) is not None:
        return view_from(stored)
    about = reveal(str(data.get("about", "")), lines=True)
    return AskView(reveal(text, lines=True), (ShownFact("input", about),) if about else ())
