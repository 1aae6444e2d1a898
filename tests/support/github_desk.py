"""A GitHub adapter on the simulated GitHub, without a bridge: what it hears, what it would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import SecretStr

from app.clock import Clock
from app.config.process import Sealer
from app.core.intake.floor import Access, decide
from app.model.inbound import Delivery, Heard, Inbound
from app.model.keys import PlaceKey, SessionKey
from app.model.proposals import Proposal
from app.model.types import ActivePlace, PlaceView, Session, SessionState
from app.model.workspaces import PullHead, Repository
from app.services.github import events
from app.services.github.adapter import App, GitHubAdapter
from app.services.github.api import GithubApi
from app.services.github.auth import Accounts, AppAuth, GitHubApps, Installations
from app.services.github.forge import GithubForge
from app.services.github.messages import EventReader
from app.services.github.names import GitHubIdentity, Identities
from app.services.github.webhook import AppWebhook
from app.store.sealed import SealedStore
from sim.github.hooks import Event
from sim.github.state import App as RemoteApp
from sim.github.state import Issue
from sim.github.world import SimulatedGithub
from tests.support.clock import HastyClock

PEOPLE = {"ann": "write", "bob": "maintain", "cleo": "admin", "tim": "triage", "rae": "read"}
BRANCH = "agent/claude/1"


def read(event: str, body: bytes, us: Identities, agent: str = "claude") -> Inbound | None:
    """Read an event for an agent, without an adapter."""
    return events.interpret(event, events.parse(event, body), EventReader(agent, us))


class Shelf:
    """Keeps sealed things in memory."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def kept(self, name: str) -> str | None:
        return self.values.get(name)

    async def keep(self, name: str, value: str) -> None:
        self.values[name] = value

    async def take(self, name: str) -> str | None:
        return self.values.pop(name, None)


@dataclass
class Desk:
    """Two agents with an App each on one repository; events are held back and read one by one."""

    github: SimulatedGithub
    clock: Clock

    def __post_init__(self) -> None:
        self.github.hooks.held = []
        self.repository = self.github.repository("acme/widgets", PEOPLE)
        self.directory = GitHubApps(("claude", "codex"))
        self.apps: dict[str, RemoteApp] = {}
        self.apis: dict[str, GithubApi] = {}
        self.adapters: dict[str, GitHubAdapter] = {}
        self.connected: dict[str, App] = {}
        self.secrets: list[str] = []
        self.in_use: list[ActivePlace] = []
        self.installations: dict[str, Installations] = {}
        self.accounts = Accounts(
            ("guest",),
            "git.example",
            cast("SealedStore", Shelf()),
            Sealer(SecretStr("k" * 32)),
            self.clock,
        )
        for agent in ("claude", "codex"):
            self._employ(agent)

    def _employ(self, agent: str) -> None:
        remote = self.apps[agent] = self.github.app(f"{agent}-bridge", "http://127.0.0.1:9/hook")
        remote.public = True
        self.github.install(remote, self.repository)
        key = SecretStr(remote.private_pem)
        installations = self.installations[agent] = Installations(("other", "third"))
        auth = AppAuth(
            str(remote.id),
            key,
            self.clock,
            keep_secret=self.secrets.append,
            installations=installations,
        )
        installations.add_owner(remote.json())
        installations.complete(self.github.account(each).id for each in installations.logins)
        api = self.apis[agent] = GithubApi(auth, self.clock, api_url=self.github.api_url)
        hook = AppWebhook(f"github:{agent}", str(remote.id), (remote.secret.encode(),))
        app = App(hook, (f"/webhooks/github/{agent}",), api, self.accounts, active=self.active)
        self.connected[agent] = app
        self.adapters[agent] = GitHubAdapter(agent, app, self.directory, self.clock)
        self.directory.introduce(GitHubIdentity(agent, remote.bot.login, remote.bot.id))

    async def active(self, _since: float) -> Sequence[ActivePlace]:
        """List the conversations in use."""
        return self.in_use

    @property
    def claude(self) -> GitHubAdapter:
        return self.adapters["claude"]

    @property
    def claude_api(self) -> GithubApi:
        return self.apis["claude"]

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


class Office:
    """A forge for some Apps, its clock, and the surfaces that it links."""

    def __init__(
        self, desk: Desk, clock: Clock | None = None, agents: tuple[str, ...] = ("claude",)
    ) -> None:
        self.clock = HastyClock()
        self.linked: list[str] = []
        url, apis = desk.github.url, {agent: desk.apis[agent] for agent in agents}
        self.forge = GithubForge(
            apis, desk.directory, clock or self.clock, git_url=url, link=self._link
        )
        self.repository = Repository("acme/widgets", f"{url}/acme/widgets.git")
        self._desk = desk

    async def _link(self, session: int, key: SessionKey, place: PlaceKey) -> bool:
        self.linked.append(f"{session} {key} {place}")
        return True

    async def propose(self, title: str = "A", branch: str = BRANCH) -> str:
        """Propose a commit."""
        self._desk.github.git.commit("acme/widgets", branch, {f"{title}.py": "x"}, "Work")
        said = {"head": branch, "base": "main", "title": title, "body": "b"}
        return await self.forge.propose(Proposal(self.repository, "claude", 7, **said))

    async def head(self, pull: Issue) -> PullHead | None:
        """Read what a session on a pull request is about."""
        key = self._desk.key(pull)
        place = PlaceKey("github", key.external)
        return await self.forge.head(Session(7, key, place, SessionState.IDLE))
