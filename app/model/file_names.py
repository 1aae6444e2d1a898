"""Names and media types of files, independent of what their sender claims; pure."""

from __future__ import annotations

import re
import unicodedata
from mimetypes import MimeTypes
from typing import Final

NAME_CHARACTERS: Final = 100
NAME_BYTES: Final = 200
"""Length of a name that fits on any disk, with room for a prefix and a suffix."""
ENDING_CHARACTERS: Final = 10
HEAD_BYTES: Final = 16
"""How much of a file tells whether it is a picture."""
UNKNOWN: Final = "application/octet-stream"

_PICTURES: Final = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
)
_UNUSABLE: Final = re.compile(r"[^\w.()+@ -]+")
_TYPES: Final = MimeTypes()
"""Python's own table: a machine's additions would make the same file differ."""


def safe_name(name: str) -> str:
    """Make a file name that is only a name, and still tells what it is."""
    plain = unicodedata.normalize("NFC", name.replace("\\", "/").rpartition("/")[2])
    plain = _UNUSABLE.sub("_", plain).strip(". ")
    stem, dot, ending = plain.rpartition(".")
    if dot and len(plain) > NAME_CHARACTERS:
        plain = f"{stem[: NAME_CHARACTERS - 12]}.{ending[:ENDING_CHARACTERS]}"
    return _within_bytes(plain[:NAME_CHARACTERS]).strip(". ") or "file"


def _within_bytes(name: str) -> str:
    """Cut a name before its ending: disks count bytes, and letters may take four."""
    if len(name.encode()) <= NAME_BYTES:
        return name
    stem, dot, tail = name.rpartition(".")
    stem, tail = (stem, f".{tail}") if dot and len(tail) <= ENDING_CHARACTERS else (name, "")
    room = NAME_BYTES - len(tail.encode())
    return stem.encode()[:room].decode(errors="ignore") + tail


def picture_type(head: bytes) -> str | None:
    """Tell by its first bytes which kind of picture a file is; None if it is none."""
    return next((name for pattern, name in _PICTURES if pattern.match(head)), None)


def media_type(name: str, head: bytes) -> str:
    """Tell what a file is: a picture by its bytes alone, everything else by its name."""
    named = _TYPES.guess_type(name)[0] or UNKNOWN
    return picture_type(head) or (UNKNOWN if named.startswith("image/") else named)


def ending(kind: str) -> str:
    """Tell the usual file name ending of a media type, if known."""
    return _TYPES.guess_extension(kind) or ""


def size_words(size: int) -> str:
    """Say how large something is."""
    if size < 1024:
        return "1 byte" if size == 1 else f"{size} bytes"
    return f"{size / 1024:.1f} KiB" if size < 1024**2 else f"{size / 1024**2:.1f} MiB"
