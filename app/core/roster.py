"""Lists the agents as people know them, and finds one by what people call it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from app.agents.agent import Agent
from app.model.agents import Availability


@dataclass(frozen=True, slots=True)
class Roster:
    """The agents that there are now."""

    agents: Mapping[str, Agent] = field(default_factory=dict)
    removed: Callable[[], Mapping[str, str]] = dict
    """Returns the names of removed agents, by id."""
    availability: Callable[[str], Availability] = field(default=lambda _agent: Availability())
    """Returns whether an agent can work."""
    former: Callable[[str], str] = field(default=lambda _agent: "")
    """Returns what people called an agent that was removed; empty if that is not known."""

    def called(self) -> dict[str, str]:
        """Return the id of each agent by its name and by its title, in lower case.

        A name counts more than a title, one of an agent that is here more than a former one, and
        a title that two agents have names neither.
        """
        here = self.agents.values()
        titles = [(each.title.casefold(), each.id) for each in here]
        times = Counter(title for title, _ in titles)
        gone = self.removed()
        return {
            **{title.casefold(): agent for agent in gone if (title := self.former(agent))},
            **{name.casefold(): agent for agent, name in gone.items()},
            **{title: agent for title, agent in titles if times[title] == 1},
            **{each.name: each.id for each in here},
        }

    def find(self, agent: str) -> Agent | None:
        """Return an agent by its id; None if it is not here."""
        return self.agents.get(agent)

    def name(self, agent: str) -> str:
        """Return what settings call an agent; its id if it is not here."""
        found = self.find(agent)
        return agent if found is None else found.name

    def title(self, agent: str) -> str:
        """Return what people call an agent, or called one that was removed."""
        found = self.find(agent)
        if found is not None:
            return found.title
        return self.former(agent) or self.removed().get(agent, agent)
