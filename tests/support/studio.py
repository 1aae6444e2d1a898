"""A world with a repository in it: people, a platform, a git server with tokens, a forge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.forge import Forge
from tests.support.git_server import GitServer
from tests.support.platform import RemotePost
from tests.support.world import World

TOKEN = "token-of-the-forge-0123456789-abcdef"
REPOSITORY = "acme/app"
BRANCH = "agent/demo/web-t1"


@dataclass
class Studio:
    """Where whole stories about repositories happen."""

    world: World
    server: GitServer
    forge: Forge

    def tell(self, text: str, place: str = "t1", *, speaker: str = "Ann") -> RemotePost:
        """Say something and wait until everything has come to its end; returns the turn's post."""
        self.world.say(place, text, speaker=speaker)
        self.world.settle()
        return self.world.turns(place)[-1]

    def command(self, text: str, place: str = "t1") -> str:
        """Give a command and return what is said about it."""
        before = len(self.notices(place))
        self.world.command(place, text)
        self.world.bridge.wait(lambda: len(self.notices(place)) > before, f"no answer to {text}")
        return self.notices(place)[-1]

    def notices(self, place: str = "t1") -> list[str]:
        """List what the bridge itself said in a place."""
        return [
            post.content["note"]
            for post in self.world.platform.posts
            if post.content["kind"] == "notice" and post.target.startswith(f"web:{place}:")
        ]

    @property
    def proposals(self) -> list[dict[str, Any]]:
        """List the pull requests."""
        found: list[dict[str, Any]] = self.forge.state()["proposals"]
        return found

    def workspace(self, session: int = 1, number: int = 1) -> Path:
        """Tell where a session's clone is."""
        return self.world.bridge.workspaces / f"{session}-demo-{number}"

    def branches(self) -> list[str]:
        """List what agents pushed."""
        return [name for name in self.server.branches(REPOSITORY) if name != "main"]

    def log(self, branch: str = BRANCH, form: str = "%an <%ae>%n%B") -> str:
        """Read the last commit of a branch."""
        return self.server.log(REPOSITORY, branch, form)

    def show(self, path: str, branch: str = BRANCH) -> str:
        """Read a file of a branch."""
        return self.server.show(REPOSITORY, branch, path)


@contextmanager
def studio(
    folder: Path,
    *,
    files: dict[str, str] | None = None,
    entry: dict[str, Any] | None = None,
    settings: dict[str, str] | None = None,
    default: bool = True,
    world: Callable[..., World] = World,
) -> Iterator[Studio]:
    """Open a studio; places have the repository unless `default` says otherwise.

    `world` makes its world, for instance one with several bridges.
    """
    with GitServer(folder / "server") as server:
        server.create(REPOSITORY, files)
        server.tokens = {TOKEN: (REPOSITORY, "write")}
        forge = Forge(folder / "forge.json")
        forge.change(token=TOKEN)
        own = {"GITHUB_REPO": REPOSITORY} if default else {}
        made = world(
            folder,
            entry={"sandbox": "auto", "mode": "free", **(entry or {})},
            settings={"GITHUB_GIT_URL": server.url, **own, **(settings or {})},
            forge=folder / "forge.json",
        )
        with made:
            yield Studio(made, server, forge)


def pull_of(post: RemotePost) -> str:
    """Tell which pull request a turn's post leads to; empty if it pushed nothing."""
    pushed = (post.content["outcome"] or {}).get("pushed") or {}
    return str(pushed.get("link", ""))
