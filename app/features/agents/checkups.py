"""Checks whether agents can work: at the start, when one changes, and on demand.

What costs nothing is checked at once. Then each agent is started once, one after another in the
background, and asked to open a conversation; no prompt is sent.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import asdict

from app.acp.late import greet
from app.acp.launch import launch_of
from app.agents.checks import FILES, check_entry, check_files, check_isolation
from app.core.runtime import Runtime
from app.core.turns.failure import obstacle
from app.errors import AgentError, AgentRefused
from app.model.agents import AgentCheck, Availability, Choices, login_needed, passed, unmet
from app.signals import Facts, Topic
from app.tasks import Tasks

logger = logging.getLogger(__name__)

PROBE_SECONDS = 120.0
"""How long other members may take to start an agent."""
PROBE = "Run `agent-bridge agents probe {agent}` to see what fails."


class Checkups:
    """Checks the agents of one bridge."""

    def __init__(self, runtime: Runtime) -> None:
        """Check what costs nothing."""
        self._runtime = runtime
        self._found = runtime.availability
        self._found.on_doubt = self.recheck
        self._due: dict[str, None] = {}
        self._seen: dict[str, object] = {}
        self._offers: dict[str, Choices] = {}
        self._news = asyncio.Event()
        self._turn = asyncio.Lock()
        self._tasks = Tasks("checkups")
        self._runs_agents = runtime.configuration.settings.role != "front"
        """Whether agents run here; others find out about them otherwise."""
        runtime.signals.on(Topic.CHOICES, self._hear)
        runtime.signals.answer(Topic.PROBE, self._answer)
        for agent in runtime.agents:
            self._check(agent)

    def start(self) -> None:
        """Check every agent in the background, and again when it is due."""
        if self._runs_agents:
            self._tasks.start(self._run(), name="checks of agents")

    async def close(self) -> None:
        """Stop; an agent that is being tried is ended."""
        await self._tasks.close()

    async def _run(self) -> None:
        agents = list(self._runtime.configuration.agents)
        for agent in agents:
            await self._isolation(agent)
        self._due.update(dict.fromkeys(agents))
        while True:
            self._news.clear()
            while self._due:
                agent = next(iter(self._due))
                del self._due[agent]
                try:
                    await self._examine(agent, start=self._runtime.starts_agents)
                except Exception:
                    logger.exception("could not check %s", agent)
            await self._news.wait()

    def recheck(self, agent: str) -> None:
        """Check an agent again in the background: its entry changed, or it could not be started."""
        self._forget_findings(agent)
        self._check(agent)
        self._due[agent] = None
        self._news.set()

    async def follow(self) -> None:
        """Check the agents that changed, and the isolation of all: none may see the others."""
        configuration = self._runtime.configuration
        for agent in self._seen.keys() - configuration.agents.keys():
            self.drop(agent)
        for agent in configuration.agents:
            if self._seen.get(agent) != self._terms(agent):
                self.recheck(agent)
        for agent in list(configuration.agents):
            await self._isolation(agent)

    def drop(self, agent: str) -> None:
        """Forget an agent that is no longer in the configuration."""
        self._due.pop(agent, None)
        self._seen.pop(agent, None)
        self._offers.pop(agent, None)
        self._found.drop(agent)

    def offers(self, agent: str) -> Choices:
        """Return what an agent offered when it was last tried."""
        return self._offers.get(agent, Choices())

    async def probe(self, agent: str) -> Availability:
        """Check an agent now, by starting it."""
        if not self._runs_agents:
            with suppress(TimeoutError):  # then what is known is shown
                await self._runtime.signals.ask(Topic.PROBE, seconds=PROBE_SECONDS, agent=agent)
            return self._found.of(agent)
        self._forget_findings(agent)
        self._check(agent)
        await self._examine(agent, start=True)
        return self._found.of(agent)

    async def _answer(self, facts: Facts) -> Facts:
        """Check an agent for a member on which none run."""
        if self._runs_agents and self._is_there(facts["agent"]):
            await self.probe(facts["agent"])
        return {}

    def _hear(self, facts: Facts) -> None:
        """Take what an agent offers that another member tried."""
        self._offers[facts["agent"]] = Choices.of(facts["choices"])

    async def _examine(self, agent: str, *, start: bool) -> None:
        """Check an agent's isolation, and start it if nothing is known that would fail."""
        await self._isolation(agent)
        if start and self._found.of(agent).state != "unavailable":
            async with self._turn:
                checks, version = await self._greet(agent)
            if self._is_there(agent):
                self._found.note(agent, *checks, version=version)
        state = self._found.of(agent)
        level = logging.DEBUG if state.state == "ready" else logging.WARNING
        logger.log(level, "%s: %s", agent, state.words or state.label)

    async def _isolation(self, agent: str) -> None:
        if self._runs_agents and self._is_there(agent):
            admission = self._runtime.admission
            before, words = admission.describe(agent), await admission.judge(agent)
            # What the start-up output has said already is no news.
            level = logging.DEBUG if words == before else logging.INFO
            if agent in admission.closed():
                level = logging.ERROR
            logger.log(level, "%s: %s", agent, words)
            self._found.note(agent, check_isolation(words))

    async def _greet(self, agent: str) -> tuple[list[AgentCheck], str]:
        """Start an agent; return what was found, and its version."""
        try:
            runtime, configuration = self._runtime, self._runtime.configuration
            greeting = await greet(
                launch_of(runtime.agents[agent], configuration, runtime.admission),
                configuration.data_dir / "workspaces" / f"check-{agent}",
                runtime.metrics,
                bridge=configuration.bridge_id,
                timeouts=runtime.timeouts,
            )
        except (AgentError, OSError) as error:
            return [self._read(agent, error)], ""
        self._offers[agent] = greeting.choices
        offered = asdict(greeting.choices)
        self._runtime.signals.send(Topic.CHOICES, agent=agent, choices=offered)
        words = f"answers as {greeting.title} {greeting.version}".rstrip()
        checks = [passed("initialize", words)]
        if greeting.logged_in is False:
            checks.append(login_needed(self._runtime.agents.name(agent)))
        elif greeting.logged_in:
            checks.append(passed("login", "opens a conversation"))
        return checks, greeting.version

    def _read(self, agent: str, error: AgentError | OSError) -> AgentCheck:
        if isinstance(error, AgentRefused):
            found = obstacle(error.code, error.message, error.data, self._runtime.clock.now())
            if found is not None and found.kind == "login":
                return login_needed(self._runtime.agents.name(agent))
        remedy = PROBE.format(agent=self._runtime.agents.name(agent))
        return unmet("initialize", f"Does not start: {error}", remedy, "unavailable")

    def _check(self, agent: str) -> None:
        if self._is_there(agent):
            found = self._runtime.agents[agent]
            if self._runs_agents:
                checks = check_entry(self._runtime.configuration, found.config, found.program)
                self._found.note(agent, *checks)
            self.check_files(agent)
            self._seen[agent] = self._terms(agent)

    def check_files(self, agent: str) -> None:
        """Note what is wrong with an agent's files."""
        self._found.forget(agent, FILES)
        self._found.note(agent, *check_files(self._runtime.files, agent))

    def _forget_findings(self, agent: str) -> None:
        if self._runs_agents:
            names = ("command", "address", "key", "initialize", "login", "limit")
            self._found.forget(agent, *names)

    def _terms(self, agent: str) -> object:
        configuration = self._runtime.configuration
        return configuration.agents[agent], configuration.keys[agent]

    def _is_there(self, agent: str) -> bool:
        return agent in self._runtime.configuration.agents
