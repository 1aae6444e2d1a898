"""Repositories behind ssh: the bridge's own key opens them, and agents never see it."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.children.sandbox import Unavailable
from app.errors import RepositoryError
from app.model.workspaces import Clone
from tests.support.ssh_server import SSHD, SshServer
from tests.support.yard import FOUND, Yard, open_yard

APP = "acme/app"
BRANCH = "agent/demo/web-t1"

pytestmark = [
    pytest.mark.skipif(
        SSHD is None or shutil.which("ssh") is None,
        reason="openssh is not installed: remotes behind ssh cannot be tried",
    ),
    pytest.mark.skipif(
        isinstance(FOUND, Unavailable), reason=f"{FOUND}: an agent's isolation cannot be tried"
    ),
]


@pytest.fixture
async def ssh(tmp_path: Path) -> AsyncIterator[SshServer]:
    with SshServer(tmp_path / "sshd", tmp_path / "person") as server:
        yield server


@pytest.fixture
async def yard(tmp_path: Path, ssh: SshServer) -> AsyncIterator[Yard]:
    path = f"{ssh.person}/bin:{os.environ['PATH']}"
    async with open_yard(tmp_path, path=path) as yard:
        yield yard


def clone_of(yard: Yard, ssh: SshServer) -> Clone:
    url = ssh.url(yard.server.path(APP))
    return replace(yard.clone(), repository=replace(yard.repository(), url=url))


@pytest.mark.slow
async def test_a_repository_behind_ssh_is_cloned_and_delivered_to(
    yard: Yard, ssh: SshServer
) -> None:
    clone = clone_of(yard, ssh)
    await yard.open(clone)
    new = yard.server.commit(APP, {"new": "new"}, "New")

    fetched = await yard.do(clone, "git fetch -q origin && git rev-parse origin/main")
    pushed = await yard.do(clone, "echo 1 > one; git add . && git commit -qm One && git push 2>&1")

    assert fetched == (0, f"{new}\n"), ssh.log
    assert pushed[0] == 0, pushed[1]
    assert yard.server.show(APP, BRANCH, "one") == "1"
    assert yard.tokens.asked == []


@pytest.mark.slow
async def test_an_agent_has_neither_the_key_nor_the_way_to_use_it(
    yard: Yard, ssh: SshServer
) -> None:
    clone = clone_of(yard, ssh)
    await yard.open(clone)
    key = (ssh.person / ".ssh" / "key").read_text().splitlines()[1]
    accepted = ssh.log.count("Accepted publickey")

    _, seen = await yard.do(
        clone,
        f"cat {ssh.person}/.ssh/*; ls {ssh.person}; env; cat .git/config; "
        f"grep -rsl 'OPENSSH PRIVATE' $HOME .git /tmp; "
        "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep SSH_AUTH_SOCK; true",
    )
    status, said = await yard.do(
        clone,
        "export GIT_SSH_COMMAND='ssh -oBatchMode=yes -oStrictHostKeyChecking=no "
        f"-oUserKnownHostsFile=/dev/null'; git ls-remote {clone.repository.url} 2>&1",
    )

    assert "AGENT_BRIDGE_PROCESS" in seen
    assert [word for word in (key, "SSH_AUTH_SOCK=", "PRIVATE KEY") if word in seen] == []
    assert status != 0
    assert "Permission denied" in said or "Connection refused" in said  # without a network
    assert ssh.log.count("Accepted publickey") == accepted


async def test_a_key_that_is_not_let_in_is_said(yard: Yard, ssh: SshServer) -> None:
    (ssh.folder / "authorized").write_text("")

    with pytest.raises(
        RepositoryError, match="accepts no SSH key of the account that runs the bridge"
    ):
        await yard.open(clone_of(yard, ssh))


async def test_a_host_that_is_not_known_is_not_trusted(yard: Yard, ssh: SshServer) -> None:
    (ssh.person / ".ssh" / "known").write_text("")

    with pytest.raises(RepositoryError, match="not known to the account that runs the bridge"):
        await yard.open(clone_of(yard, ssh))

    assert "Accepted publickey" not in ssh.log


async def test_a_repository_that_is_not_behind_ssh_is_said(yard: Yard, ssh: SshServer) -> None:
    gone = replace(yard.repository(), url=ssh.url(yard.server.path("acme/gone")))

    with pytest.raises(RepositoryError, match="it does not exist"):
        await yard.open(replace(yard.clone(), repository=gone))
