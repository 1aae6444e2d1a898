"""Files that hold a text: every form of it goes, from any kind of file."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from app.children.kept_files import KeptFiles
from app.vault import PIECE_BYTES, vault_of
from tests.support.deep import LEVELS, dug, reach

LEAKED = "zq7-Pelican-4411-secret"
ACCENTED = "clé-très-privée-ünter-4411"


def look(folder: Path, *but: str) -> KeptFiles:
    """Look into one folder."""
    return KeptFiles(folder, folder, but=but or ("never",))


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
    kept, vault = look(tmp_path / "data", "left-out"), vault_of(text)

    found = kept.find(vault)
    left = kept.clean(vault, found.held)

    assert {each.name for each in found.held} == {*files, f"{text}.txt", "link"}
    assert (left, found.unread, kept.find(vault).held) == ([], [], [])
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
    kept, vault = look(tmp_path / "data"), vault_of(LEAKED)

    found = kept.find(vault)
    left = kept.clean(vault, found.held)

    assert (sorted(found.held), left, kept.find(vault).held) == ([file, folder], [], [])
    assert os.listxattr(file) == os.listxattr(folder) == ["user.other"]
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("harmless", 0o400)


def test_the_deepest_file_is_cleaned(tmp_path: Path) -> None:
    kept, vault = look(tmp_path), vault_of(LEAKED)
    with dug(tmp_path, LEVELS, LEAKED):
        found = kept.find(vault)

        assert [each.name for each in found.held] == ["found"]
        assert kept.clean(vault, found.held) == []
        assert reach(tmp_path, LEVELS) == "*" * len(LEAKED)


def test_objects_of_git_are_left_to_git(tmp_path: Path) -> None:
    objects = tmp_path / "repository.git" / "objects"
    (objects / "pack").mkdir(parents=True)
    (objects.parent / "HEAD").write_text("ref: refs/heads/main\n")
    (objects / "pack" / "a.pack").write_text(LEAKED)
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / "of-nothing").write_text(LEAKED)

    found = look(tmp_path).find(vault_of(LEAKED))

    assert found.repositories == [objects.parent]
    assert found.held == [tmp_path / "objects" / "of-nothing"]
