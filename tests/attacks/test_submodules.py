"""An agent names a private repository as a submodule of its own branch, and asks for a clone."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from app.model.workspaces import Clone
from tests.support.ssh_server import SSHD, SshServer
from tests.support.yard import Yard, link, open_yard

APP, VAULT, OTHER = "acme/app", "acme/vault", "private/vault"
pytestmark = pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None,
    reason="openssh is not installed: remotes behind ssh cannot be tried",
)


@dataclass
class Site:
    """A server whose repositories only the person who runs the bridge can read."""

    yard: Yard
    ssh: SshServer
    address: Callable[[Path], str]

    def clone(self, number: int, branch: str) -> Clone:
        """Describe the clone of a session."""
        made = self.yard.clone(number, way="existing", branch=branch)
        url = self.address(self.yard.server.path(APP))
        return replace(made, repository=replace(made.repository, url=url))

    async def prepare(self, number: int, branch: str) -> tuple[str, list[str]]:
        """Open a branch as a new session does; returns what is said, and what is in the folder."""
        clone = self.clone(number, branch)
        await self.yard.open(clone)
        said = await self.yard.checkouts.prepare(clone)
        return said or "", sorted(each.name for each in (clone.folder / "vault").iterdir())


@pytest.fixture(params=["ssh", "file"])
async def site(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    with SshServer(tmp_path / "sshd", tmp_path / "person") as ssh:
        path = f"{ssh.person}/bin:{os.environ['PATH']}"
        async with open_yard(tmp_path, path=path) as yard:
            for name in (VAULT, OTHER):
                yard.server.create(name, {"key.txt": "private\n"})
            addresses = {"ssh": ssh.url, "file": lambda folder: f"file://{folder}"}
            yield Site(yard, ssh, addresses[request.param])


ATTACK = """\
printf '[submodule "vault"]\\n\\tpath = vault\\n\\turl = %s\\n' '{url}' > .gitmodules
git add . && git update-index --add --cacheinfo 160000,{commit},vault
git commit -qm x && git push 2>&1"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "url"), [(VAULT, "../vault.git"), (OTHER, "../../private/vault.git")]
)
async def test_a_branch_alone_has_nothing_fetched_with_the_keys_of_the_person(
    site: Site, name: str, url: str
) -> None:
    server = site.yard.server
    branch = "agent/demo/web-t1"
    own = replace(site.clone(1, branch), way="branch")
    await site.yard.open(own)
    script = ATTACK.format(url=url, commit=server.head(name, "main"))
    status, words = await site.yard.do(own, script)
    assert status == 0, words

    said, held = await site.prepare(2, branch)

    assert "The submodule vault is missing" in said
    assert held == []
    mirrors = [each.name for each in site.yard.mirrors.root.glob("*.git")]
    assert [name for name in mirrors if "vault" in name] == []


async def test_what_the_default_branch_names_is_still_there(site: Site) -> None:
    link(site.yard, APP, VAULT, "../vault.git")

    assert await site.prepare(1, "main") == ("", [".git", "key.txt"])


@pytest.mark.long
@pytest.mark.parametrize(
    "url", ["../../private/vault.git", "../x%2f..%2f..%2fprivate/vault.git", "../../../etc"]
)
async def test_a_relative_address_does_not_leave_the_owner_of_the_repository(
    site: Site, url: str
) -> None:
    link(site.yard, APP, OTHER, url)

    said, held = await site.prepare(1, "main")

    assert "the bridge does not fetch from addresses of this kind" in said
    assert held == []
