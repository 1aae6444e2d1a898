"""Lists the commands of the message box: the bridge's own, and those that agents offer; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from app.model.text import reveal_line
from app.server.page.view.views import Agent


@dataclass(frozen=True, slots=True)
class Item:
    """One command."""

    name: str
    words: str
    """What it does."""
    text: str
    """What it puts into the message box."""
    whole: bool
    """Whether that is all, so that it can be sent."""


BRIDGE: Final = (
    Item("/stop", "Stop the work and hold what is queued", "stop", whole=True),
    Item("/stop all", "Stop the work and drop what is queued", "stop all", whole=True),
    Item("/new", "Start over with your next message", "new", whole=True),
    Item("/status", "Say what the agents are doing", "status", whole=True),
    Item("/queue now", "Send what is queued now", "queue now", whole=True),
    Item("/queue drop", "Discard what is queued", "queue drop", whole=True),
    Item("/listen latest", "Let the agent you spoke to last answer", "listen latest", whole=True),
    Item("/listen all", "Let every agent answer", "listen all", whole=True),
    Item("/listen mention", "Let only mentioned agents answer", "listen mention", whole=True),
    Item("/agent", "Hand over to another agent", "agent ", whole=False),
    Item("/schedule", "Ask the same again and again", 'schedule "0 9 * * 1-5" ', whole=False),
    Item("/repo", "Work in another repository", "repo ", whole=False),
    Item("/help", "List all commands", "help", whole=True),
)


def items(offered: Iterable[tuple[Agent, Iterable[Mapping[str, str]]]]) -> list[Item]:
    """List the commands of agents, then those of the bridge."""
    known = list(offered)
    alone = len(known) == 1
    return [
        *(_item(agent, each, alone=alone) for agent, listed in known for each in listed),
        *BRIDGE,
    ]


def _item(agent: Agent, offered: Mapping[str, str], *, alone: bool) -> Item:
    name, hint = reveal_line(offered["name"]), offered.get("hint", "")
    about = " · ".join(filter(None, (agent.title, offered.get("description"), hint)))
    to = "" if alone else f"@{agent.name} "
    return Item(f"/{name}", reveal_line(about), f"{to}/{name} ", whole=False)
