"""Converts the files of a prompt to content blocks, each in the richest form that its agent takes.

A file's name is not trusted: an image is one only if it begins like one, because a model that gets
something else as an image refuses the whole conversation from then on.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from acp import (
    audio_block,
    embedded_blob_resource,
    embedded_text_resource,
    image_block,
    resource_block,
    resource_link_block,
    text_block,
)
from acp.schema import (
    AudioContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    PromptCapabilities,
    ResourceContentBlock,
    TextContentBlock,
)

from app.model.types import Attachment

Block = AudioContentBlock | EmbeddedResourceContentBlock | ImageContentBlock | ResourceContentBlock

IMAGE_BYTES = 3 * 1024 * 1024  # models take 5 MB of base64, which is a third longer
AUDIO_BYTES = 10 * 1024 * 1024  # some ten minutes of speech
TEXT_BYTES = 64 * 1024  # a long source file; more is better read in parts, by its path
ALL_BYTES = 16 * 1024 * 1024  # what one prompt may carry; an agent reads it as one line

NOT_SENT = "[{name} was attached, but is too large for you or of a kind that you do not take.]"
"""What an agent on another machine is told of a file; the person who sent it can be asked."""

_IMAGES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}
_IMAGES |= dict.fromkeys((b"GIF87a", b"GIF89a"), "image/gif")


def blocks_of(
    files: Sequence[Attachment], capabilities: PromptCapabilities, *, is_remote: bool = False
) -> list[Block | TextContentBlock]:
    """Convert files to content blocks; one that cannot be read or sent becomes a link.

    An agent on another machine gets whole files, since it could follow no link.
    """
    blocks: list[Block | TextContentBlock] = []
    room = ALL_BYTES
    for file in files:
        data = _read(file.path, min(room, max(IMAGE_BYTES, AUDIO_BYTES, TEXT_BYTES)))
        uri = f"attachment:///{quote(file.path.name)}" if is_remote else file.path.as_uri()
        block: Block | TextContentBlock | None = None
        if data is not None:
            block = _rich(file, data, capabilities, uri)
            if block is None and is_remote and capabilities.embedded_context:
                block = _whole(file, data, uri)
        if block is None and is_remote:
            block = text_block(NOT_SENT.format(name=file.path.name))
        elif block is None:
            name, kind = file.path.name, file.media_type or None
            block = resource_link_block(name, file.path.as_uri(), mime_type=kind)
        elif data is not None:
            room -= len(data)
        blocks.append(block)
    return blocks


def _whole(file: Attachment, data: bytes, uri: str) -> Block:
    kind, text = file.media_type or None, _text(data)
    if text is not None:
        return resource_block(embedded_text_resource(uri, text, mime_type=kind))
    return resource_block(embedded_blob_resource(uri, _encode(data), mime_type=kind))


def _rich(
    file: Attachment, data: bytes, capabilities: PromptCapabilities, uri: str
) -> Block | None:
    image = _image_type(data)
    if image is not None:
        fits = capabilities.image and len(data) <= IMAGE_BYTES
        return image_block(_encode(data), image, uri=uri) if fits else None
    if file.media_type.startswith("audio/"):
        return audio_block(_encode(data), file.media_type) if capabilities.audio else None
    if not capabilities.embedded_context or len(data) > TEXT_BYTES:
        return None
    text = _text(data)
    if text is None:
        return None
    return resource_block(embedded_text_resource(uri, text, mime_type=file.media_type or None))


def _read(path: Path, limit: int) -> bytes | None:
    """Read a file that is not too large; links are not followed."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        try:
            data = file.read(limit + 1)
        except OSError:
            return None
    return data if data is not None and len(data) <= limit else None


def _image_type(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _IMAGES.items() if data.startswith(start)), None)


def _text(data: bytes) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()
