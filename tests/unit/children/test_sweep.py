"""Sweeping files: every form of a text goes, from any kind of file."""

from __future__ import annotations

import base64
import os
import subprocess
from pathlib import Path

import pytest

from app.children.sweep import Sweep
from app.vault.octets import PIECE_BYTES, cross_out, vault_of
from tests.support.deep import LEVELS, dug, reach

LEAKED = "zq7-Pelican-4411-secret"
ACCENTED = "clé-très-privée-ünter-4411"


@pytest.mark.parametrize("text", [LEAKED, ACCENTED])
def test_content_names_and_links_are_cleaned_and_nothing_else_changes(
    tmp_path: Path, text: str
) -> None:
    octets = text.encode()
    files = {
        "plain": b"key=" + octets + b"\n",
        "encoded": b"data " + base64.b64encode(b"KEY=" + octets) + b" end",
        "binary": bytes(range(256)) + octets + bytes(range(256)),
        "seam": b"-" * (PIECE_BYTES - 7) + octets + b"-" * 9,
    }
    below = tmp_path / "data" / "below"
    below.mkdir(parents=True)
    for name, content in files.items():
        (below / name).write_bytes(content)
    (below / "plain").chmod(0o400)
    (below / f"{text}.txt").write_text("harmless")
    (below / "link").symlink_to(f"/x/{text}")
    (below / "outside").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_bytes(octets)
    os.mkfifo(below / "pipe")
    (tmp_path / "data" / "left-out.db").write_bytes(octets)
    sweep, vault = Sweep(tmp_path / "data", but=("left-out",)), vault_of(text)

    found = sweep.find(vault)
    left = sweep.clean(vault, found.held)

    assert {each.name for each in found.held} == {*files, f"{text}.txt", "link"}
    assert (left, found.unread, sweep.find(vault).held) == ([], [], [])
    assert {name: len((below / name).read_bytes()) for name in files} == {
        name: len(content) for name, content in files.items()
    }
    assert (below / "binary").read_bytes() == files["binary"].replace(octets, b"*" * len(octets))
    assert (below / "plain").stat().st_mode & 0o777 == 0o400
    assert (below / "[secret].txt").read_text() == "harmless"
    assert not (below / "link").is_symlink()
    assert (tmp_path / "elsewhere").read_bytes() == octets


def test_extended_attributes_that_hold_the_text_go_and_others_stay(tmp_path: Path) -> None:
    folder, file = tmp_path / "data" / "folder", tmp_path / "data" / "file"
    folder.mkdir(parents=True)
    file.write_text("harmless")
    for path in (folder, file):
        os.setxattr(path, "user.said", f"key={LEAKED}".encode())
        os.setxattr(path, f"user.{LEAKED}", b"x")
        os.setxattr(path, "user.other", b"harmless")
    file.chmod(0o400)
    sweep, vault = Sweep(tmp_path / "data", but=()), vault_of(LEAKED)

    found = sweep.find(vault)
    left = sweep.clean(vault, found.held)

    assert (sorted(found.held), left, sweep.find(vault).held) == ([file, folder], [], [])
    assert os.listxattr(file) == os.listxattr(folder) == ["user.other"]
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("harmless", 0o400)


def test_the_deepest_file_is_cleaned(tmp_path: Path) -> None:
    sweep, vault = Sweep(tmp_path, but=()), vault_of(LEAKED)
    with dug(tmp_path, LEVELS, LEAKED):
        found = sweep.find(vault)

        assert [each.name for each in found.held] == ["found"]
        assert sweep.clean(vault, found.held) == []
        assert reach(tmp_path, LEVELS) == "*" * len(LEAKED)


def test_objects_of_git_are_left_to_git(tmp_path: Path) -> None:
    objects = tmp_path / "repository.git" / "objects"
    (objects / "pack").mkdir(parents=True)
    (objects.parent / "HEAD").write_text("ref: refs/heads/main\n")
    (objects / "pack" / "a.pack").write_text(LEAKED)
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / "of-nothing").write_text(LEAKED)

    found = Sweep(tmp_path, but=("never",)).find(vault_of(LEAKED))

    assert found.objects == [objects]
    assert found.held == [tmp_path / "objects" / "of-nothing"]


def test_a_branch_with_the_text_in_its_name_gets_another_one_and_stays_a_branch(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data" / "clone"
    slug = LEAKED.lower()

    def git(*words: str) -> str:
        command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    folder.mkdir(parents=True)
    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "first")
    git("branch", "aa")
    git("branch", f"packed-{slug}")
    git("branch", "zz")
    git("pack-refs", "--all")
    git("checkout", "-q", "-b", f"agent/the-key-is-{slug}")
    git("config", f"branch.agent/the-key-is-{slug}.remote", "origin")
    (folder / f"{LEAKED}.env").write_text("staged")
    git("add", "-A")
    sweep, vault = Sweep(tmp_path / "data", but=("never",)), vault_of(LEAKED)

    left = sweep.clean(vault, sweep.find(vault).held)

    crossed = "x" * len(LEAKED)
    assert (left, sweep.find(vault).held) == ([], [])
    assert git("branch", "--show-current").strip() == f"agent/the-key-is-{crossed}"
    assert cross_out(vault, f"agent/the-key-is-{slug}") == f"agent/the-key-is-{crossed}"
    names = git("for-each-ref", "--format=%(refname:short)").split()
    assert names == ["aa", f"agent/the-key-is-{crossed}", "main", f"packed-{crossed}", "zz"]
    assert {git("rev-parse", name) for name in names} == {git("rev-parse", "HEAD")}
    git("reset", "-q")
    assert git("status", "--porcelain") == "?? [secret].env\n"
