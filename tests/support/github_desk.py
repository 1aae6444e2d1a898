"""A GitHub adapter on the simulated GitHub, without a bridge: what it hears, what it would do."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import SecretStr

from app.core.inbound import Delivery, Heard
from app.core.intake.access import Access
from app.core.intake.floor import decide
from app.core.keys import SessionKey
from app.core.ports import Clock
from app.core.types import PlaceView
from app.services.github.adapter import App, GithubAdapter
from app.services.github.api import GithubApi
from app.services.github.auth import AppAuth
from app.services.github.directory import Directory
from app.services.github.mentions import Identity
from app.services.github.webhook import Hook
from app.sim.github.hooks import Event
from app.sim.github.state import App as RemoteApp
from app.sim.github.state import Issue
from app.sim.github.world import SimulatedGithub

PEOPLE = {"ann": "write", "bob": "maintain", "cleo": "admin", "tim": "triage", "rae": "read"}


@dataclass
class Desk:
    """Two agents with an App each on one repository; events are held back and read one by one."""

    github: SimulatedGithub
    clock: Clock

    def __post_init__(self) -> None:
        self.github.hooks.held = []
        self.repository = self.github.repository("acme/widgets", PEOPLE)
        self.directory = Directory(("claude", "codex"))
        self.apps: dict[str, RemoteApp] = {}
        self.apis: dict[str, GithubApi] = {}
        self.adapters: dict[str, GithubAdapter] = {}
        self.secrets: list[str] = []
        for agent in ("claude", "codex"):
            self._employ(agent)

    def _employ(self, agent: str) -> None:
        remote = self.apps[agent] = self.github.app(f"{agent}-bridge", "http://127.0.0.1:9/hook")
        self.github.install(remote, self.repository)
        key = SecretStr(remote.private_pem)
        auth = AppAuth(str(remote.id), key, self.clock, keep_secret=self.secrets.append)
        api = self.apis[agent] = GithubApi(auth, self.clock, api_url=self.github.api_url)
        hook = Hook(f"github:{agent}", str(remote.id), (remote.secret.encode(),))
        app = App(hook, (f"/webhooks/github/{agent}",), api)
        self.adapters[agent] = GithubAdapter(agent, app, self.directory, self.clock)
        self.directory.introduce(Identity(agent, remote.bot.login, remote.bot.id))

    @property
    def claude(self) -> GithubAdapter:
        return self.adapters["claude"]

    def key(self, issue: Issue, agent: str = "claude") -> SessionKey:
        return SessionKey("github", f"{issue.repository.full_name}:{issue.number}", agent)

    def events(self, agent: str = "claude") -> list[Event]:
        """Take the events that an agent's App was told since the last time."""
        held = self.github.hooks.held or []
        mine = [event for event in held if event.app is self.apps[agent]]
        self.github.hooks.held = [event for event in held if event.app is not self.apps[agent]]
        return mine

    def delivery(self, event: Event, agent: str = "claude") -> Delivery:
        """Let a webhook in."""
        sent = {name.encode(): value.encode() for name, value in event.headers().items()}
        return self.adapters[agent].verify(sent, event.body, self.clock.now())

    async def heard(self, agent: str = "claude") -> list[Heard]:
        """Understand what an App was told, each message once."""
        found: dict[str, Heard] = {}
        for event in self.events(agent):
            heard = self.adapters[agent].parse(self.delivery(event, agent))
            if isinstance(heard, Heard) and heard.message_id not in found:
                found[heard.message_id] = await self.adapters[agent].gather(heard)
        return list(found.values())

    async def triggered(self, access: Access | None = None) -> list[str]:
        """Tell which agents act on what happened since the last time."""
        acting: list[str] = []
        for heard in await self.heard():
            for agent in decide(heard, PlaceView(("claude",), "claude"), "latest").agents:
                adapter = self.adapters[agent]
                why = await (access or Access()).refusal(adapter, heard.speaker, heard.place)
                acting += [agent] if why is None else []
        return acting

    async def close(self) -> None:
        for api in self.apis.values():
            await api.close()
