"""What stands in content blocks, put into words: text as it is, everything else by name and size.

Pure. Bytes that an agent sends inside a message are named and not kept: no place could show them,
and an agent that means a file to stay writes it into its workspace.
"""

from __future__ import annotations

from app.acp.json_values import Json, count, mapping, objects, string

MAX_NAME = 200  # characters of a name or an address; longer ones are no names
TERMINAL = "[output in a terminal of the agent]"


def block_words(block: object) -> str:
    """Put one content block into words; nothing for what makes no sense."""
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
    """Put a block of a message into words; what is no text stands on a line of its own."""
    words = block_words(block)
    return words if not words or mapping(block).get("type") == "text" else f"\n{words}\n"


def tool_words(content: object) -> str:
    """Put what a tool call shows into words; changes of files are shown elsewhere."""
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


def _named(kind: str, *facts: str | int | None) -> str:
    known = [_bytes(fact) if isinstance(fact, int) else fact for fact in facts if fact]
    return f"[{kind}{': ' if known else ''}{', '.join(known)}]"


def _short(value: object) -> str:
    return " ".join((string(value) or "")[: MAX_NAME + 1].split())[:MAX_NAME]


def _size(data: object) -> int | None:
    """Tell how many bytes stand behind base64."""
    text = string(data)
    return None if text is None else len(text) * 3 // 4 - text[-2:].count("=")


def _bytes(size: int) -> str:
    if size < 1024:
        return f"{size} bytes"
    return f"{size / 1024:.1f} KiB" if size < 1024**2 else f"{size / 1024**2:.1f} MiB"
