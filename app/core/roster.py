"""Lists the agents as people know them, and keeps whether each can work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime

from app.agents.agent import Agent
from app.clock import Clock
from app.model import wording
from app.model.agents import AgentCheck, Availability, login_needed, passed, unmet
from app.signals import ALONE, Facts, Signals, Topic


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


@dataclass(slots=True)
class _Found:
    """What is known of one agent."""

    checks: dict[str, AgentCheck] = field(default_factory=dict)
    version: str = ""


class Availabilities:
    """The availability of every agent, by its id."""

    def __init__(
        self,
        clock: Clock,
        redact: Callable[[str], str] = str,
        *,
        name_of: Callable[[str], str] = str,
        signals: Signals = ALONE,
    ) -> None:
        """Keep nothing yet.

        `name_of` returns the name of an agent in commands.
        """
        self._clock = clock
        self._redact = redact
        self._name_of = name_of
        self.on_doubt: Callable[[str], None] = lambda _agent: None
        """Is told the agent that could not be started for a turn."""
        self._found: dict[str, _Found] = {}
        self._own: dict[str, set[str]] = {}
        """The names of the checks that were made here."""
        self._signals = signals
        signals.on(Topic.AVAILABILITY, self._hear)
        signals.on_sweep(self._announce)

    def of(self, agent: str) -> Availability:
        """Return what is known now; an agent of which nothing is known counts as ready."""
        found = self._found.get(agent, _Found())
        now = self._clock.now()
        current = [self._at(now, check) for check in found.checks.values()]
        return Availability.of([each for each in current if each is not None], found.version)

    def note(self, agent: str, *checks: AgentCheck, version: str = "") -> None:
        """Keep what checks found, each in place of the last of its name."""
        clean = [
            replace(check, words=self._redact(check.words), remedy=self._redact(check.remedy))
            for check in checks
        ]
        self._keep(agent, clean, version)
        self._own.setdefault(agent, set()).update(check.name for check in clean)
        self._tell(agent, clean)

    def _tell(self, agent: str, checks: Iterable[AgentCheck]) -> None:
        """Tell other members what was found out here."""
        told, version = [asdict(check) for check in checks], self._found[agent].version
        self._signals.send(Topic.AVAILABILITY, agent=agent, checks=told, version=version)

    def _announce(self) -> None:
        """Tell members that came meanwhile."""
        for agent, names in self._own.items():
            if agent in self._found:
                checks = self._found[agent].checks
                self._tell(agent, [checks[name] for name in sorted(names) if name in checks])

    def _keep(self, agent: str, checks: Iterable[AgentCheck], version: str) -> None:
        found = self._found.setdefault(agent, _Found())
        found.version = version or found.version
        found.checks.update((check.name, check) for check in checks)

    def _hear(self, facts: Facts) -> None:
        """Take what another member found out."""
        self._forget(facts["agent"], *facts.get("over", ()))
        checks = [AgentCheck(**each) for each in facts.get("checks", ())]
        self._keep(facts["agent"], checks, facts.get("version", ""))
        self._own.get(facts["agent"], set()).difference_update(check.name for check in checks)

    def forget(self, agent: str, *names: str) -> None:
        """Forget what checks found, all of them or those of these names."""
        over = names or tuple(self._found.get(agent, _Found()).checks)
        self._forget(agent, *over)
        self._signals.send(Topic.AVAILABILITY, agent=agent, over=over)

    def _forget(self, agent: str, *names: str) -> None:
        if found := self._found.get(agent):
            for name in names:
                found.checks.pop(name, None)

    def drop(self, agent: str) -> None:
        """Forget an agent that was removed."""
        self._found.pop(agent, None)

    # What turns report.

    def worked(self, agent: str) -> None:
        """Note that a turn was done."""
        for check in self.of(agent).checks:
            if check.state != "ready":
                self.forget(agent, check.name)
        self.note(agent, passed("last turn", wording.WORKED_AT.format(time=self._time())))

    def limited(self, agent: str, until: float | None) -> None:
        """Note that its provider's limit stopped a turn."""
        check = unmet("limit", wording.HIT_LIMIT, "", "limited")
        self.note(agent, replace(check, until=until))

    def logged_out(self, agent: str) -> None:
        """Note that a missing login stopped a turn."""
        self.note(agent, login_needed(self._name_of(agent)))

    def failed(self, agent: str, words: str, *, started: bool) -> None:
        """Note that a turn failed; an agent that could not even be started is checked again."""
        self.note(
            agent, unmet("last turn", wording.FAILED_AT.format(time=self._time(), words=words), "")
        )
        if not started:
            self.on_doubt(agent)

    def _at(self, now: float, check: AgentCheck) -> AgentCheck | None:
        """Return a check as it is now; None once it is over."""
        if check.until is not None and check.until <= now:
            return None
        if check.state == "limited":
            return replace(check, remedy=wording.limit_reset(check.until, now, resumes=False))
        return check

    def _time(self) -> str:
        moment = datetime.fromtimestamp(self._clock.now(), UTC)
        return f"{moment:%b} {moment.day}, {moment:%H:%M} UTC"
