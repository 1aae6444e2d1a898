"""Attachments: names that are nothing but names, pictures by their bytes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.text import NAME_BYTES, NAME_CHARACTERS, picture_type, safe_name
from app.server.page.uploads import forget


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("shot.png", "shot.png"),
        ("Bericht über März.pdf", "Bericht über März.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\x\\a.txt", "a.txt"),
        (".bashrc", "bashrc"),
        ("..", "file"),
        ("", "file"),
        ("a\x00b\n.png", "a_b_.png"),
        ("<img src=x onerror=alert(1)>.png", "_img src_x onerror_alert(1)_.png"),
        ("exe.\u202egnp.txt", "exe._gnp.txt"),
        ("x" * 200 + ".tar", "x" * 88 + ".tar"),
        ("事" * 90 + ".md", "事" * 65 + ".md"),
    ],
)
def test_a_name_is_nothing_but_a_name(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@given(st.text())
def test_any_name_becomes_one_that_stays_as_it_is(name: str) -> None:
    safe = safe_name(name)

    assert safe
    assert not set(safe) & set("/\\\0<>\"'&")
    assert not safe.startswith(".")
    assert len(safe) <= NAME_CHARACTERS
    assert len(safe.encode()) <= NAME_BYTES
    assert safe_name(safe) == safe


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n....", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x00\x01\x02\x03WEBP", "image/webp"),
        (b"<svg xmlns=", None),
        (b"<!doctype html>", None),
        (b"", None),
    ],
)
def test_a_picture_is_known_by_its_bytes(head: bytes, kind: str | None) -> None:
    assert picture_type(head) == kind


def test_an_old_file_that_belongs_to_no_message_is_removed_and_no_other(tmp_path: Path) -> None:
    for name, changed in (("kept", 5), ("lost", 5), ("waits", 5), ("fresh", 50)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("words")
        os.utime(tmp_path / name, (changed, changed))

    gone = forget(tmp_path, {"kept/a.txt"}, [b'{"url": "waits/a.txt"}'], before=10)

    assert gone == 1
    assert sorted(each.name for each in tmp_path.iterdir()) == ["fresh", "kept", "waits"]
    assert forget(tmp_path / "nowhere", set(), [], before=10) == 0
