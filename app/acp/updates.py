"""Converts ACP session updates, and the content blocks in them, to the core's updates.

Pure: values in, values out. Nothing here raises for any JSON; an invalid update becomes an
`UnknownUpdate` or is left out. No result is nested deeper than `MAX_DEPTH`, so that all of them can
be serialised.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, Literal

from app.acp.json_values import Json, count, is_shallow, label, mapping, objects, price, string
from app.model.text import ending, size_words
from app.model.updates import (
    AskOption,
    AskRequest,
    BridgeUpdate,
    FileDiff,
    FileUpdate,
    NoticeUpdate,
    PlanStep,
    PlanUpdate,
    StateUpdate,
    TextUpdate,
    ThoughtUpdate,
    ToolUpdate,
    UnknownUpdate,
    UsageUpdate,
)

MAX_DEPTH = 64  # serialisers give up at 254 (orjson) or 1000 (json); no honest input comes near
TOO_DEEP = "(nested too deeply to be shown)"
MAX_OPTIONS = 50  # more answers than people read
MAX_LOCATIONS = 200  # files that one call can be said to touch
MAX_TITLE = 300  # characters of a title that is made from the tool's input
MAX_NOTICE = 500  # characters of what an agent reports besides its answer
MAX_NAME = 200  # characters of a name or an address
MAX_ADDRESS = 4096  # characters: no path on Linux is longer
COMPACTED = "The agent compacted its context: it goes on with a summary of what was said."
TERMINAL = "[output in a terminal of the agent]"

Status = Literal["pending", "in_progress", "completed"]


def bridge_update(update: object) -> BridgeUpdate | None:
    """Convert one ACP update; None if it holds nothing new."""
    if not isinstance(update, dict):
        return UnknownUpdate("", {})
    kind = update.get("sessionUpdate")
    if not isinstance(kind, str):
        return _unknown("", update)
    translate = _KINDS.get(kind)
    return _unknown(kind, update) if translate is None else translate(update)


def ask_request(tool_call: Json, options: Sequence[Json]) -> AskRequest:
    """Convert a permission request to an ask that can be shown alone."""
    tool = _tool(tool_call)
    known = tool if isinstance(tool, ToolUpdate) else None
    return AskRequest(
        call="" if known is None else known.call,
        title=_ask_title(known),
        options=_options(options),
        tool=known,
        arguments_hash=arguments_hash(tool_call),
    )


def arguments_hash(tool_call: Json) -> str:
    """Hash what a call would do; equal calls of two processes have equal hashes."""
    facts = {name: tool_call.get(name) for name in ("kind", "title", "rawInput")}
    # Some agents report what they would write only here.
    facts["changes"] = [
        [item.get(name) for name in ("path", "oldText", "newText")]
        for item in objects(tool_call.get("content"))
        if item.get("type") == "diff"
    ]
    if not is_shallow(facts, MAX_DEPTH + 1):
        return ""
    canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _text(update: Json) -> BridgeUpdate | None:
    text = message_words(update.get("content"))
    if not text:
        return None
    # A sub-agent's text is not the answer: the agent writes that itself.
    if (parent := _parent(update)) is not None:
        return ThoughtUpdate(text, parent)
    return message_file(update.get("content")) or TextUpdate(text)


def _thought(update: Json) -> BridgeUpdate | None:
    text = message_words(update.get("content"))
    return ThoughtUpdate(text, _parent(update)) if text else None


def _nothing(_update: Json) -> BridgeUpdate | None:
    return None


def _tool(update: Json) -> BridgeUpdate:
    call = update.get("toolCallId")
    if not isinstance(call, (str, int)):
        return _unknown("tool_call", update)
    content = update.get("content")
    locations = update.get("locations")
    raw_input = update.get("rawInput")
    return ToolUpdate(
        call=label(str(call)) or "",
        title=label(update.get("title")),
        kind=label(update.get("kind")),
        status=label(update.get("status")),
        input=raw_input if is_shallow(raw_input, MAX_DEPTH) else TOO_DEEP,
        output=_output(content, update.get("rawOutput")),
        diffs=_diffs(content) if isinstance(content, list) else None,
        locations=_locations(locations) if isinstance(locations, list) else None,
        parent=_parent(update),
    )


def _parent(update: Json) -> str | None:
    """Find the call whose sub-agent sent this; ACP has no field for it, two agents do."""
    meta = mapping(update.get("_meta"))
    claude = mapping(meta.get("claudeCode")).get("parentToolUseId")
    return label(claude) or label(meta.get("parentToolCallId")) or None


def _new_tool(update: Json) -> BridgeUpdate:
    # ACP: a call that is announced without a status is pending.
    return _tool({"status": "pending", **update})


def _plan(update: Json) -> BridgeUpdate:
    return PlanUpdate(_steps(update.get("entries")))


def _plan_content(update: Json) -> BridgeUpdate:
    plan = update.get("plan")
    if not isinstance(plan, dict):
        return _unknown("plan_update", update)
    if plan.get("type") == "items":
        return PlanUpdate(_steps(plan.get("entries")))
    words = string(plan.get("content")) or string(plan.get("uri")) or ""
    return PlanUpdate(tuple(PlanStep(line) for line in words.splitlines() if line.strip()))


def _plan_removed(_update: Json) -> BridgeUpdate:
    return PlanUpdate(())


def _usage(update: Json) -> BridgeUpdate:
    money = mapping(update.get("cost"))
    return UsageUpdate(
        used=count(update.get("used")),
        size=count(update.get("size")),
        cost=price(money.get("amount")),
        currency=label(money.get("currency")),
    )


def _commands(update: Json) -> BridgeUpdate:
    commands = [
        {
            "name": name,
            "description": label(command.get("description")) or "",
            "hint": label(mapping(command.get("input")).get("hint")) or "",
        }
        for command in objects(update.get("availableCommands"))
        if (name := label(command.get("name")))
    ]
    return StateUpdate("commands", commands)


def _mode(update: Json) -> BridgeUpdate:
    mode = label(update.get("currentModeId"))
    return _unknown("current_mode_update", update) if mode is None else StateUpdate("mode", mode)


def _config_options(update: Json) -> BridgeUpdate:
    options = objects(update.get("configOptions"))
    return StateUpdate("options", [option for option in options if is_shallow(option, MAX_DEPTH)])


def _info(update: Json) -> BridgeUpdate | None:
    if "title" not in update:
        return None
    return StateUpdate("title", label(update["title"]) or "")


def thread_status(update: object) -> str:
    """Return how the agent says its session is: `active`, `idle` or `systemError`; or nothing."""
    codex = mapping(mapping(mapping(update).get("_meta")).get("codex"))
    return string(mapping(codex.get("threadStatus")).get("type")) or ""


def _unknown(kind: str, update: Json) -> UnknownUpdate:
    return UnknownUpdate(label(kind) or "", update if is_shallow(update, MAX_DEPTH) else {})


def _notice(update: Json) -> BridgeUpdate | None:
    # Whose words they are is said: a notice of the bridge itself looks the same.
    said = [label(update.get(name)) for name in ("title", "description")]
    words = ". ".join(each.rstrip(".") for each in said if each)[:MAX_NOTICE]
    return NoticeUpdate(f"The agent reports: {words}.") if words else None


def _compaction(update: Json) -> BridgeUpdate | None:
    match update.get("status"):
        case "completed":
            return NoticeUpdate(COMPACTED, compaction=label(update.get("compactionId")) or "?")
        case "failed":
            return NoticeUpdate("The agent could not compact its context.")
        case _:
            return None


_KINDS: dict[str, Callable[[Json], BridgeUpdate | None]] = {
    "agent_message_chunk": _text,
    "agent_thought_chunk": _thought,
    "user_message_chunk": _nothing,
    "tool_call": _new_tool,
    "tool_call_update": _tool,
    "plan": _plan,
    "plan_update": _plan_content,
    "plan_removed": _plan_removed,
    "available_commands_update": _commands,
    "current_mode_update": _mode,
    "config_option_update": _config_options,
    "session_info_update": _info,
    "usage_update": _usage,
    "notice": _notice,
    "compaction_update": _compaction,
    "compaction_summary_chunk": _nothing,
}


def _output(content: object, raw: object) -> str | None:
    if isinstance(content, list):
        return tool_words(content) or string(raw) or ""
    if raw is None or isinstance(raw, str):
        return raw
    if not is_shallow(raw, MAX_DEPTH):
        return TOO_DEEP
    return json.dumps(raw, ensure_ascii=False, default=str)


def _diffs(content: list[Any]) -> tuple[FileDiff, ...]:
    return tuple(
        FileDiff(path, string(item.get("oldText")), string(item.get("newText")) or "")
        for item in objects(content)
        if item.get("type") == "diff" and (path := label(item.get("path")))
    )


def _locations(locations: list[Any]) -> tuple[str, ...]:
    found = []
    for location in objects(locations)[:MAX_LOCATIONS]:
        path, line = label(location.get("path")), count(location.get("line"))
        if path:
            found.append(path if line is None else f"{path}:{line}")
    return tuple(found)


def _steps(entries: object) -> tuple[PlanStep, ...]:
    return tuple(
        PlanStep(text, _status(entry.get("status")))
        for entry in objects(entries)
        if (text := label(entry.get("content")))
    )


def _status(value: object) -> Status:
    return value if value in ("in_progress", "completed") else "pending"


def _options(options: Sequence[Json]) -> tuple[AskOption, ...]:
    return tuple(
        AskOption(
            option_id, label(option.get("name")) or option_id, label(option.get("kind")) or ""
        )
        for option in options[:MAX_OPTIONS]
        if (option_id := label(option.get("optionId"))) is not None
    )


def _ask_title(tool: ToolUpdate | None) -> str:
    if tool is None:
        return "Permission"
    if tool.title:
        return tool.title
    command = tool.input.get("command") if isinstance(tool.input, dict) else None
    if isinstance(command, list):
        command = " ".join(str(part) for part in command if isinstance(part, (str, int)))
    return (string(command) or tool.kind or tool.call or "Permission")[:MAX_TITLE]


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
