"""Sockets of daemons, also those that another network has bound in a shared folder."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.children import sandbox
from app.children.layout import Confinement, Mount, PathRule, survey
from app.children.sandbox import DaemonSockets


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Path]:
    """Bind a socket, with a file and a link to it next to it."""
    path = tmp_path / "run" / "daemon.sock"
    path.parent.mkdir()
    (path.parent / "link").symlink_to(path)
    (path.parent / "file").touch()
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(str(path))
        yield path


def test_a_socket_is_found_that_the_kernel_lists(
    served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "_ROOTS", (str(tmp_path / "missing"),))

    assert served in DaemonSockets().find()


def test_a_socket_is_found_by_a_search_that_the_kernel_does_not_list(
    served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "_LISTED", tmp_path / "missing")
    monkeypatch.setattr(sandbox, "_ROOTS", (str(tmp_path),))

    assert DaemonSockets().find() == {served}


def test_a_search_does_not_wait_for_a_disk_of_another_machine(
    served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"server:/run {served.parent} nfs4 rw 0 0\n")
    monkeypatch.setattr(sandbox, "_LISTED", tmp_path / "missing")
    monkeypatch.setattr(sandbox, "_MOUNTS", mounts)
    monkeypatch.setattr(sandbox, "_ROOTS", (str(tmp_path),))

    assert DaemonSockets().find() == frozenset()


def test_the_folder_of_a_socket_is_hidden_and_that_of_the_agent_keeps_its_own() -> None:
    confinement = Confinement(home=Path("/x/home"), workspace=Path("/x/work"))
    daemons = ["/x/run/a.sock", "/x/b.sock", "/x/work/own.sock", "/var/lib/c.sock", "/run/d.sock"]

    mounts = survey(confinement, map(Path, daemons))

    assert Mount(PathRule.VEIL, Path("/x/run")) in mounts
    covered = {mount.path for mount in mounts if mount.rule is PathRule.COVER}
    assert covered == {Path("/x/b.sock"), Path("/var/lib/c.sock")}
