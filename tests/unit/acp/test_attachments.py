"""Files of a prompt: which form each of them takes, and what is believed of them."""

from __future__ import annotations

import base64
from pathlib import Path

import orjson
import pytest
from acp.schema import PromptCapabilities

from app.acp import attachments
from app.acp.attachments import TEXT_BYTES, blocks_of
from app.model.types import Attachment
from tests.unit.acp.helpers import Bench, Memory, scripted
from tests.unit.acp.test_session import opened

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\nand so on"
ALL = PromptCapabilities(image=True, audio=True, embedded_context=True)
NOTHING = PromptCapabilities()


def laid(folder: Path, name: str, data: bytes, media_type: str = "") -> Attachment:
    path = folder / name
    path.write_bytes(data)
    return Attachment(path, media_type)


def kinds(files: list[Attachment], capabilities: PromptCapabilities) -> list[str]:
    return [block.type for block in blocks_of(files, capabilities)]


def test_each_file_takes_the_richest_form_that_the_agent_takes(tmp_path: Path) -> None:
    files = [
        laid(tmp_path, "a.png", PNG, "image/png"),
        laid(tmp_path, "b.txt", "größer".encode(), "text/plain"),
        laid(tmp_path, "c.mp3", b"ID3", "audio/mpeg"),
        laid(tmp_path, "d.zip", b"PK\x03\x04\x00\xff", "application/zip"),
    ]

    assert kinds(files, ALL) == ["image", "resource", "audio", "resource_link"]
    assert kinds(files, NOTHING) == ["resource_link"] * 4


def test_an_image_is_what_begins_like_one_whatever_it_is_called(tmp_path: Path) -> None:
    files = [
        laid(tmp_path, "lie.png", b"just words", "image/png"),
        laid(tmp_path, "photo.bin", b"\xff\xd8\xff\xe0", "application/octet-stream"),
        laid(tmp_path, "moving.gif", b"GIF89a..", "image/png"),
        laid(tmp_path, "new.webp", b"RIFF\x00\x00\x00\x00WEBPVP8 ", ""),
    ]

    blocks = blocks_of(files, ALL)

    assert [getattr(block, "mime_type", "") for block in blocks[1:]] == [
        "image/jpeg",
        "image/gif",
        "image/webp",
    ]
    assert blocks[0].type == "resource"


def test_a_large_text_is_pointed_at(tmp_path: Path) -> None:
    small = laid(tmp_path, "small.txt", b"x" * TEXT_BYTES)
    large = laid(tmp_path, "large.txt", b"x" * (TEXT_BYTES + 1))

    assert kinds([small, large], ALL) == ["resource", "resource_link"]


def test_images_beyond_what_a_prompt_may_carry_are_pointed_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachments, "ALL_BYTES", 2 * len(PNG))
    files = [laid(tmp_path, f"{number}.png", PNG) for number in range(3)]

    assert kinds(files, ALL) == ["image", "image", "resource_link"]


def test_nothing_is_read_through_a_link_and_a_missing_file_is_pointed_at(tmp_path: Path) -> None:
    secret = laid(tmp_path, "secret", b"words")
    link = tmp_path / "innocent.txt"
    link.symlink_to(secret.path)

    blocks = blocks_of([Attachment(link, ""), Attachment(tmp_path / "gone", "")], ALL)

    assert [block.type for block in blocks] == ["resource_link"] * 2


async def test_files_go_along_with_the_words(bench: Bench, tmp_path: Path) -> None:
    agent = await opened(
        bench(
            scripted("""
def initialize(message):
    answer(message, protocolVersion=1, agentCapabilities={"promptCapabilities": {"image": True}})
def prompt(message):
    say(json.dumps(message["params"]["prompt"]))
    answer(message, stopReason="end_turn")
""")
        )
    )
    picture = laid(tmp_path, "a.png", PNG, "image/png")
    notes = laid(tmp_path, "notes.txt", b"words", "text/plain")
    heard = Memory()

    await agent.prompt("look", heard, files=[picture, notes])

    words, image, link = orjson.loads(heard.text)
    assert words == {"type": "text", "text": "look"}
    assert base64.b64decode(image["data"]) == PNG
    assert (image["type"], image["mimeType"]) == ("image", "image/png")
    assert (link["type"], link["name"]) == ("resource_link", "notes.txt")
    assert link["uri"] == notes.path.as_uri()
    await agent.close()


def test_an_agent_elsewhere_gets_whole_files_and_no_path_of_this_machine(tmp_path: Path) -> None:
    files = [
        laid(tmp_path, "large.txt", b"x" * (TEXT_BYTES + 1)),
        laid(tmp_path, "some data.bin", b"\0\1\2", "application/octet-stream"),
        laid(tmp_path, "a.png", PNG),
        laid(tmp_path, "huge.txt", b"x" * (attachments.AUDIO_BYTES + 1)),
    ]

    taken = blocks_of(files, ALL, is_remote=True)
    refused = blocks_of(files, PromptCapabilities(), is_remote=True)

    assert [block.type for block in taken] == ["resource", "resource", "image", "text"]
    assert [block.type for block in refused] == ["text"] * 4
    written = [block.model_dump_json() for block in (*taken, *refused)]
    assert [str(tmp_path) in each for each in written] == [False] * 8
    assert "attachment:///some%20data.bin" in written[1]
