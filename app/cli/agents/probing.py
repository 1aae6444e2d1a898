"""`agents probe`: tries everything that the bridge uses of an agent, and keeps its card."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

from app.acp.card import Card, card_path, write_card
from app.acp.probing.probe import Probe
from app.cli.agents.visiting import Visitor, tell_bridge, visitor
from app.cli.asking.screen import Margin, margin
from app.cli.tables import show_table
from app.clock import SystemClock
from app.config import Configuration


def probe(configuration: Configuration, name: str) -> bool:
    """Probe an agent and show its card; returns whether nothing failed.

    Raises:
        BridgeError: it could not even be tried.
        OSError: the card cannot be kept.
    """
    aside = margin(sys.stderr, quiet=False)
    visiting = visitor(configuration, name)
    path = card_path(configuration.shared_dir, visiting.entry.id)
    try:
        card = asyncio.run(_run_probe(visiting, aside))
    finally:
        aside.still()
    write_card(path, card)
    tell_bridge(configuration, name)
    show_table(
        ("step", "verdict", "seconds", "remark"),
        [(step.name, step.verdict, f"{step.seconds:.2f}", step.remark) for step in card.steps],
    )
    for note in visiting.program.quirks.notes if visiting.program else ():
        aside.line(f"Good to know: {note}", "dim")
    aside.line(f"{name}: {card.words}. Saved in {path}.", "dim")
    return not card.of("fails")


async def _run_probe(visiting: Visitor, aside: Margin) -> Card:
    def told(step: str) -> None:
        aside.status(f"{visiting.entry.name}: {step}")

    card = await Probe(visiting.visits, SystemClock(), told).run()
    redact = visiting.vault.redact
    return replace(
        card, steps=tuple(replace(step, remark=redact(step.remark)) for step in card.steps)
    )
