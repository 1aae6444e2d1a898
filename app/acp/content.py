"""Converts content blocks to text: text as it is, everything else by name and size.

Pure. A file inside a message is for people: it is passed on together with the text that names it.
Files in tool input and output are named and not kept.
"""

from __future__ import annotations

import base64
import binascii

from app.acp.json_values import Json, count, mapping, objects, string
from app.model.file_names import ending, size_words
from app.model.updates import FileUpdate

MAX_NAME = 200  # characters of a name or an address
MAX_ADDRESS = 4096  # characters: no path on Linux is longer
TERMINAL = "[output in a terminal of the agent]"


def block_words(block: object) -> str:
    """Convert one content block to text; empty for an invalid one."""
    content = mapping(block)
    match content.get("type"):
        case "text":
            return string(content.get("text")) or ""
        case "resource_link":
            return _link(content)
        case "resource":
            return _resource(mapping(content.get("resource")))
        case "image" | "audio" as kind:
            media_type = _short(content.get("mimeType"))
            return _named(kind, media_type, _short(content.get("uri")), _size(content.get("data")))
        case _:
            return ""


def message_words(block: object) -> str:
    """Convert a block of a message to text; anything but text gets its own line."""
    words = block_words(block)
    return words if not words or mapping(block).get("type") == "text" else f"\n{words}\n"


def message_file(block: object) -> FileUpdate | None:
    """Take a file out of a block of a message: its bytes, or the path that the agent names."""
    content = mapping(block)
    words = message_words(block)
    match content.get("type"):
        case "image" | "audio" as kind:
            media_type = _short(content.get("mimeType"))
            name = _last(_short(content.get("uri"))) or f"{kind}{ending(media_type)}"
            return _with_bytes(name, content.get("data"), words)
        case "resource":
            resource = mapping(content.get("resource"))
            name = _last(_short(resource.get("uri"))) or "file"
            return _with_bytes(name, resource.get("blob"), words)
        case "resource_link":
            address = string(content.get("uri")) or ""
            name = _short(content.get("name")) or _last(address)
            is_file = address.startswith("file://") and len(address) <= MAX_ADDRESS
            return FileUpdate(name or "file", words, address=address) if is_file else None
        case _:
            return None


def tool_words(content: object) -> str:
    """Convert what a tool call shows to text; file changes are shown elsewhere."""
    words = (
        TERMINAL if item.get("type") == "terminal" else block_words(item.get("content"))
        for item in objects(content)
    )
    return "\n".join(each for each in words if each)


def _link(content: Json) -> str:
    address = _short(content.get("uri"))
    name = _short(content.get("title")) or _short(content.get("name")) or address
    if not address.startswith(("https://", "http://")):
        size = count(content.get("size"))
        return _named("file", name, address if address != name else "", size)
    return f"[{name.replace('[', '(').replace(']', ')')}]({address})"


def _resource(resource: Json) -> str:
    text = string(resource.get("text"))
    if text is not None:
        return text
    media_type = _short(resource.get("mimeType"))
    return _named("file", _short(resource.get("uri")), media_type, _size(resource.get("blob")))


def _with_bytes(name: str, data: object, words: str) -> FileUpdate | None:
    text = string(data)
    try:
        content = base64.b64decode(text or "", validate=True)
    except (binascii.Error, ValueError):
        return None
    return FileUpdate(name, words, content) if content else None


def _last(address: str) -> str:
    return address.rstrip("/").rpartition("/")[2]


def _named(kind: str, *facts: str | int | None) -> str:
    known = [size_words(fact) if isinstance(fact, int) else fact for fact in facts if fact]
    return f"[{kind}{': ' if known else ''}{', '.join(known)}]"


def _short(value: object) -> str:
    return " ".join((string(value) or "")[: MAX_NAME + 1].split())[:MAX_NAME]


def _size(data: object) -> int | None:
    """Return the number of bytes that base64 text decodes to."""
    text = string(data)
    return None if text is None else len(text) * 3 // 4 - text[-2:].count("=")
