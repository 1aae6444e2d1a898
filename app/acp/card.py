"""Stores the conformance card of an agent: what a probe saw it do.

A reader needs neither the agent nor the protocol. A card is valid for one version of one command.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

Verdict = Literal["works", "fails", "absent", "skipped"]
"""`absent`: the agent does not offer it. `skipped`: an earlier failure left no way to try."""


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """One thing that was tried."""

    name: str
    verdict: Verdict
    seconds: float
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """What a probe saw."""

    agent: str
    command: tuple[str, ...]
    version: str
    """As the agent reported it."""
    at: float
    steps: tuple[ProbeStep, ...]

    def failed(self, name: str) -> bool:
        """Tell whether something was tried and did not work."""
        return any(step.name == name and step.verdict == "fails" for step in self.steps)

    def of(self, verdict: Verdict) -> list[str]:
        """List the steps that ended like this."""
        return [step.name for step in self.steps if step.verdict == verdict]

    @property
    def words(self) -> str:
        """Summarise the card in a few words."""
        failing = self.of("fails")
        works = f"{len(self.of('works'))} of {len(self.steps)} work"
        return f"{works}, fails: {', '.join(failing)}" if failing else works

    def is_about(self, command: Sequence[str], version: str | None = None) -> bool:
        """Tell whether the card is for this command and, if given, this version."""
        return self.command == tuple(command) and version in (None, self.version)


def card_path(shared_dir: Path, agent: str) -> Path:
    """Return the path of an agent's card."""
    return shared_dir / "agents" / agent / "card.json"


def write_card(path: Path, card: Card) -> None:
    """Store a card in place of the previous one.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(asdict(card), indent=1, ensure_ascii=False), encoding="utf-8")
    draft.replace(path)


def read_card(path: Path) -> Card | None:
    """Read a card; None if there is none that can be read."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        steps = tuple(ProbeStep(**step) for step in facts.pop("steps"))
        return Card(**{**facts, "command": tuple(facts["command"]), "steps": steps})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
