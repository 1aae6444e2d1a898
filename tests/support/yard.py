"""Clones, mirrors and gates on a real disk, with a git server beside them, for tests of git alone.

What the agent does is done in the agent's own isolation: bubblewrap where it works.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from app.children.environment import agent_environment
from app.children.homes import Home
from app.children.layout import Confinement
from app.children.limits import DiskSpace
from app.children.network.link import NetworkPlan
from app.children.sandbox import Plain, Unavailable, find_bubblewrap
from app.model.keys import SessionKey
from app.model.workspaces import Author, Clone, OpenedClone, Repository, Target, Way
from app.repos.checkouts import GitCheckouts
from app.repos.git import Git
from app.repos.mirror import Mirrors
from app.repos.sandboxed_git import Inside, SandboxedGit
from app.vault import Vault
from tests.support.git_server import GitServer, git

READ = "token-that-only-reads-0123456789"
WRITE = "token-that-writes-abcdefghijklmn"
SECRET = "a-secret-that-the-bridge-holds"
BOT = Author("demo[bot]", "demo@bots.example.com")
FOUND = find_bubblewrap(os.environ["PATH"])


class OneToken:
    """A token source that hands out one token and remembers for whom."""

    def __init__(self, token: str | None = WRITE) -> None:
        self.value = token
        self.by_name: dict[str, str] = {}
        self.asked: list[tuple[str, str]] = []
        self.workflow_trouble = ""

    async def token(
        self, repository: Repository, agent: str, *, workflows: bool = False
    ) -> str | None:
        self.asked.append((repository.name, agent))
        return self.by_name.get(repository.name, self.value)

    async def workflow_refusal(self, repository: Repository, agent: str) -> str:
        return self.workflow_trouble


@dataclass
class Yard:
    """Everything that git needs, in one folder."""

    folder: Path
    server: GitServer
    checkouts: GitCheckouts
    mirrors: Mirrors
    git: Git
    tokens: OneToken
    vault: Vault
    isolation: SandboxedGit
    shallow: set[Target]
    """Repositories of which only the latest history is fetched."""
    partial: set[Target]
    """Repositories whose files are fetched when they are needed."""
    variables: dict[Target, dict[str, str]]
    """What the setup of each repository gets."""
    sent: list[str] = field(default_factory=list)
    questions: list[tuple[str, Sequence[str]]] = field(default_factory=list)
    allows: bool = False

    def repository(self, name: str = "acme/app") -> Repository:
        """Name a repository of the server."""
        return Repository(name, f"{self.server.url}/{name}.git")

    def clone(
        self,
        number: int = 1,
        *,
        way: Way = "branch",
        branch: str = "agent/demo/web-t1",
        start: str = "",
        name: str = "acme/app",
    ) -> Clone:
        """Describe the clone of a session."""
        return Clone(
            folder=self.folder / "workspaces" / f"{number}-demo",
            home=f"{number}-demo",
            session=SessionKey("web", f"t{number}", "demo"),
            repository=self.repository(name),
            way=way,
            author=BOT,
            branch="" if way == "detached" else branch,
            start=start,
        )

    async def open(self, clone: Clone, *, fresh: bool = True) -> OpenedClone | None:
        """Open a clone as a turn would."""
        return await self.checkouts.open(
            clone, fresh=fresh, on_sent=self.note_sent, ask=self.answer
        )

    async def do(self, clone: Clone, script: str) -> tuple[int, str]:
        """Do something as the agent: its status, and all that it said."""
        inside = Inside(
            self.isolation, clone.folder, clone.home, self.checkouts.visible(clone.folder), "tests"
        )
        status, written, words = await inside.run(
            "sh", "-c", f"unset $(env | sed -n 's/^\\(GIT_[A-Z_0-9]*\\)=.*/\\1/p')\n{script}",
            seconds=60, limit=10**7,
        )  # fmt: skip
        return status, written.decode(errors="replace") + words

    async def note_sent(self, commit: str) -> None:
        self.sent.append(commit)

    async def answer(self, question: str, files: Sequence[str]) -> bool:
        self.questions.append((question, files))
        return self.allows


@asynccontextmanager
async def open_yard(
    folder: Path,
    *,
    free_bytes: int = 0,
    path: str = os.environ["PATH"],
    network: NetworkPlan | None = None,
) -> AsyncIterator[Yard]:
    """Have a server with one repository, acme/app, and everything to clone it."""
    person = folder / "person"
    data = folder / "data"
    home = data / "homes" / "demo"
    for each in (person, home):
        each.mkdir(parents=True, exist_ok=True)
    surroundings = {"PATH": path, "HOME": str(person)}
    proxies = network.environment if network is not None else {}
    sandbox = Plain() if isinstance(FOUND, Unavailable) else FOUND
    isolation = SandboxedGit(
        sandbox,
        Confinement(home=home, workspace=home, person=person, masked=(data,)),
        lambda marker: agent_environment(surroundings, home=home, own=proxies, marker=marker),
        lambda _session: Home(home),
        network=network,
    )
    git, tokens, vault = Git(surroundings, "tests"), OneToken(), Vault([SECRET, WRITE])
    shallow: set[Target] = set()
    partial: set[Target] = set()
    variables: dict[Target, dict[str, str]] = {}
    mirrors = Mirrors(
        data / "mirrors",
        git,
        tokens,
        surroundings,
        disk=DiskSpace(folder, watermark=free_bytes),
        shallow=shallow,
        partial=partial,
    )
    checkouts = GitCheckouts(
        data / "gates",
        {"demo": isolation, "codex": isolation}.get,
        git,
        mirrors,
        tokens=tokens,
        vault=vault,
        person=surroundings,
        variables=variables,
        unshared=(".claude/settings.local.json",),
    )
    with GitServer(folder / "server") as server:
        server.create("acme/app")
        server.tokens = {WRITE: ("acme/app", "write"), READ: ("acme/app", "read")}
        yard = Yard(
            data,
            server,
            checkouts,
            mirrors,
            git,
            tokens,
            vault,
            isolation,
            shallow,
            partial,
            variables,
        )
        try:
            yield yard
        finally:
            await checkouts.close_all()


def link(yard: Yard, parent: str, child: str, url: str, *, branch: str = "main") -> None:
    """Let one repository have another as a submodule, in the folder of its short name."""
    bare, name = yard.server.path(parent), child.partition("/")[2]
    modules = f'[submodule "{name}"]\n\tpath = {name}\n\turl = {url}\n'
    blob = git(bare, "hash-object", "-w", "--stdin", given=modules)
    head = yard.server.head(child, "main")
    listed = f"100644 blob {blob}\t.gitmodules\n160000 commit {head}\t{name}\n"
    tree = git(bare, "mktree", "--missing", given=listed)
    commit = git(bare, "commit-tree", tree, "-p", "main", "-m", "Library")
    git(bare, "update-ref", f"refs/heads/{branch}", commit)


def create_private(yard: Yard, name: str) -> None:
    """Make a repository that only its own token opens."""
    short = name.partition("/")[2]
    yard.server.create(name, {f"{short}.txt": f"{short}\n"})
    yard.server.tokens[f"token-of-{short}"] = (name, "read")
    yard.tokens.by_name[name] = f"token-of-{short}"
