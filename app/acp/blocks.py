"""Converts files to content blocks of a prompt, in a form that the agent accepts."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from pathlib import Path

from acp import (
    audio_block,
    embedded_text_resource,
    image_block,
    resource_block,
    resource_link_block,
)
from acp.schema import (
    AudioContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    PromptCapabilities,
    ResourceContentBlock,
)

from app.model.types import Attachment

Block = AudioContentBlock | EmbeddedResourceContentBlock | ImageContentBlock | ResourceContentBlock

IMAGE_BYTES = 3 * 1024 * 1024  # models take 5 MB of base64, which is a third longer
AUDIO_BYTES = 10 * 1024 * 1024  # some ten minutes of speech
TEXT_BYTES = 64 * 1024  # a long source file; more is better read in parts, by its path
ALL_BYTES = 16 * 1024 * 1024  # what one prompt may carry; an agent reads it as one line

_IMAGES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}
_IMAGES |= dict.fromkeys((b"GIF87a", b"GIF89a"), "image/gif")


def blocks_of(files: Sequence[Attachment], capabilities: PromptCapabilities) -> list[Block]:
    """Convert files to content blocks; one that cannot be read or sent becomes a link."""
    blocks: list[Block] = []
    room = ALL_BYTES
    for file in files:
        data = _read(file.path, min(room, max(IMAGE_BYTES, AUDIO_BYTES, TEXT_BYTES)))
        block = None if data is None else _rich(file, data, capabilities)
        if block is None:
            name, kind = file.path.name, file.media_type or None
            block = resource_link_block(name, file.path.as_uri(), mime_type=kind)
        elif data is not None:
            room -= len(data)
        blocks.append(block)
    return blocks


def _rich(file: Attachment, data: bytes, capabilities: PromptCapabilities) -> Block | None:
    image = _image_type(data)
    if image is not None:
        fits = capabilities.image and len(data) <= IMAGE_BYTES
        return image_block(_encode(data), image, uri=file.path.as_uri()) if fits else None
    if file.media_type.startswith("audio/"):
        return audio_block(_encode(data), file.media_type) if capabilities.audio else None
    if not capabilities.embedded_context or len(data) > TEXT_BYTES:
        return None
    text = _text(data)
    if text is None:
        return None
    return resource_block(
        embedded_text_resource(file.path.as_uri(), text, mime_type=file.media_type or None)
    )


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
