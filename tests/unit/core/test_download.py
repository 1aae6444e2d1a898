"""Attachments are downloaded whole or not at all, however many agents want the same one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from app.core.files import attachments as module
from app.core.files.attachments import PlatformFileRefused, download
from app.model.types import File

pytestmark = pytest.mark.anyio

FILE = File("shot", "application/octet-stream", "folder/shot")
PNG = b"\x89PNG\r\n\x1a\n"


async def chunks(*given: bytes, barrier: asyncio.Barrier | None = None) -> AsyncGenerator[bytes]:
    for each in given:
        yield each
    if barrier is not None:
        await barrier.wait()


def stored(uploads: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (uploads / "folder").iterdir()}


@pytest.mark.long
async def test_two_agents_download_the_same_file_at_once_300_times(tmp_path: Path) -> None:
    for number in range(300):
        uploads, barrier = tmp_path / str(number), asyncio.Barrier(2)
        found = await asyncio.gather(
            *(
                download(FILE, chunks(PNG, b"rest", barrier=barrier), uploads, service="GitHub")
                for _ in range(2)
            )
        )

        assert {file.media_type for file in found} == {"image/png"}
        assert stored(uploads) == {"shot": PNG + b"rest"}


async def test_a_file_that_is_stored_is_not_requested_again(tmp_path: Path) -> None:
    async def refuse() -> AsyncGenerator[bytes]:
        raise PlatformFileRefused("it is gone")
        yield b""

    await download(FILE, chunks(b"text"), tmp_path, service="Slack")

    assert await download(FILE, refuse(), tmp_path, service="Slack") == FILE


async def test_a_download_that_fails_halfway_leaves_a_note_and_nothing_else(
    tmp_path: Path,
) -> None:
    async def broken() -> AsyncGenerator[bytes]:
        yield b"half"
        raise PlatformFileRefused("the connection broke")

    note = await download(FILE, broken(), tmp_path, service="Slack")

    words = b"shot was attached, but could not be fetched from Slack: the connection broke\n"
    assert stored(tmp_path) == {"shot.missing.txt": words}
    assert (note.name, note.media_type) == ("shot.missing.txt", "text/plain")


async def test_a_download_that_takes_too_long_leaves_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DOWNLOAD_SECONDS", 0.01)

    async def stuck() -> AsyncGenerator[bytes]:
        await asyncio.Event().wait()
        yield b""

    note = await download(FILE, stuck(), tmp_path, service="Linear")

    assert "it took longer than 0.01 s" in (tmp_path / note.url).read_text()
    assert list(stored(tmp_path)) == ["shot.missing.txt"]


async def test_a_file_over_the_limit_leaves_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FILE_BYTES", 5)

    note = await download(FILE, chunks(b"123", b"456"), tmp_path, service="Linear")

    assert "it is larger than" in (tmp_path / note.url).read_text()
    assert list(stored(tmp_path)) == ["shot.missing.txt"]
