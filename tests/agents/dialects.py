"""The four tongues in which agents ask their models, each read into a question and answered; pure.

Anthropic messages, OpenAI responses, OpenAI chat completions, Gemini content generation: only so
much of each as the agents of the tests use.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.agents.script import Call, Question, Reply, Said, Tool, Words

Json = Mapping[str, Any]
Event = tuple[str | None, object]
"""One server-sent event: its name, where the dialect has names, and its data."""

USAGE = {"input_tokens": 10, "output_tokens": 10}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one kind of model API is spoken."""

    read: Callable[[Json], Question]
    begin: Callable[[Reply], Iterable[Event]]
    piece: Callable[[Reply, str], Iterable[Event]]
    end: Callable[[Reply], Iterable[Event]]
    whole: Callable[[Reply], object]
    """The same answer for an agent that does not want it streamed."""


def _text(content: object) -> str:
    """Join the text of a message, in whichever form it comes."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def _joined(reply: Reply) -> str:
    return "".join(reply.pieces) if isinstance(reply, Words) else ""


# Anthropic messages


def _read_messages(body: Json) -> Question:
    def told() -> Iterator[tuple[Said, str]]:
        for message in body.get("messages", []):
            content = message["content"]
            for part in content if isinstance(content, list) else []:
                if part.get("type") == "tool_result":
                    yield "tool", _text(part.get("content"))
            if message["role"] == "user":
                yield "user", _text(content)

    tools = (Tool(tool["name"], tool.get("input_schema", {})) for tool in body.get("tools", []))
    return Question.of(told(), tools, stream=bool(body.get("stream")))


def _message(reply: Reply, content: list[object], stop: str | None) -> dict[str, object]:
    return {
        "id": f"msg_{reply.id}",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": USAGE,
    }


def _begin_message(reply: Reply) -> Iterator[Event]:
    yield "message_start", {"type": "message_start", "message": _message(reply, [], None)}
    block: dict[str, object] = {"type": "text", "text": ""}
    if isinstance(reply, Call):
        block = {"type": "tool_use", "id": reply.id, "name": reply.tool, "input": {}}
    yield (
        "content_block_start",
        {"type": "content_block_start", "index": 0, "content_block": block},
    )
    if isinstance(reply, Call):
        delta = {"type": "input_json_delta", "partial_json": json.dumps(reply.arguments)}
        yield (
            "content_block_delta",
            {"type": "content_block_delta", "index": 0, "delta": delta},
        )


def _message_piece(_reply: Reply, text: str) -> Iterator[Event]:
    delta = {"type": "text_delta", "text": text}
    yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}


def _message_stop(reply: Reply) -> str:
    return "tool_use" if isinstance(reply, Call) else "end_turn"


def _end_message(reply: Reply) -> Iterator[Event]:
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    delta = {"stop_reason": _message_stop(reply), "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": USAGE}
    yield "message_stop", {"type": "message_stop"}


def _whole_message(reply: Reply) -> object:
    block: dict[str, object] = {"type": "text", "text": _joined(reply)}
    if isinstance(reply, Call):
        arguments = dict(reply.arguments)
        block = {"type": "tool_use", "id": reply.id, "name": reply.tool, "input": arguments}
    return _message(reply, [block], _message_stop(reply))


# OpenAI responses


def _read_responses(body: Json) -> Question:
    items = body.get("input", [])

    def told() -> Iterator[tuple[Said, str]]:
        for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
            if str(item.get("type", "")).endswith("call_output"):
                yield "tool", _text(item.get("output"))
            elif item.get("role") == "user":
                yield "user", _text(item.get("content"))

    tools = (
        Tool(f"{space}{tool['name']}", tool.get("parameters", {}))
        for space, tool in _functions(body.get("tools", []))
    )
    return Question.of(told(), tools, stream=bool(body.get("stream")))


def _functions(tools: Iterable[Json]) -> Iterator[tuple[str, Json]]:
    """Yield functions with the name of the group that they are in, and a slash."""
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from ((f"{tool['name']}/", each) for each in tool["tools"])
        elif tool.get("type") == "function":
            yield "", tool


def _item(reply: Reply) -> dict[str, object]:
    if isinstance(reply, Call):
        space, _, name = reply.tool.rpartition("/")
        return {
            "type": "function_call",
            "id": f"fc_{reply.id}",
            "call_id": reply.id,
            "name": name,
            **({"namespace": space} if space else {}),
            "arguments": json.dumps(reply.arguments),
            "status": "completed",
        }
    text = {"type": "output_text", "text": _joined(reply), "annotations": []}
    return {
        "type": "message",
        "id": f"msg_{reply.id}",
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }


def _response(reply: Reply, status: str, output: list[object]) -> dict[str, object]:
    usage = {
        **USAGE,
        "total_tokens": 20,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": 0,
        "model": "scripted",
        "status": status,
        "output": output,
        "usage": usage if status == "completed" else None,
    }


def _begin_response(reply: Reply) -> Iterator[Event]:
    created = {"type": "response.created", "response": _response(reply, "in_progress", [])}
    yield "response.created", created
    if isinstance(reply, Words):
        item = _item(reply) | {"content": [], "status": "in_progress"}
        added = {"type": "response.output_item.added", "output_index": 0, "item": item}
        yield "response.output_item.added", added


def _response_piece(reply: Reply, text: str) -> Iterator[Event]:
    kind = "response.output_text.delta"
    yield (
        kind,
        {
            "type": kind,
            "item_id": f"msg_{reply.id}",
            "output_index": 0,
            "content_index": 0,
            "delta": text,
        },
    )


def _end_response(reply: Reply) -> Iterator[Event]:
    done = {"type": "response.output_item.done", "output_index": 0, "item": _item(reply)}
    yield "response.output_item.done", done
    completed = _response(reply, "completed", [_item(reply)])
    yield "response.completed", {"type": "response.completed", "response": completed}


def _whole_response(reply: Reply) -> object:
    return _response(reply, "completed", [_item(reply)])


# OpenAI chat completions


def _read_chat(body: Json) -> Question:
    speakers: dict[str, Said] = {"user": "user", "tool": "tool"}
    told = (
        (speakers[message["role"]], _text(message.get("content")))
        for message in body.get("messages", [])
        if message["role"] in speakers
    )
    tools = (
        Tool(tool["function"]["name"], tool["function"].get("parameters", {}))
        for tool in body.get("tools", [])
    )
    return Question.of(told, tools, stream=bool(body.get("stream")))


def _chunk(reply: Reply, delta: Json, finish: str | None = None) -> Iterator[Event]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {
        "id": f"chat_{reply.id}",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "scripted",
        "choices": [choice],
    }
    if finish is not None:
        chunk["usage"] = _CHAT_USAGE
    yield None, chunk


_CHAT_USAGE = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}


def _chat_call(reply: Call) -> dict[str, object]:
    function = {"name": reply.tool, "arguments": json.dumps(reply.arguments)}
    return {"index": 0, "id": reply.id, "type": "function", "function": function}


def _begin_chat(reply: Reply) -> Iterator[Event]:
    yield from _chunk(reply, {"role": "assistant", "content": ""})
    if isinstance(reply, Call):
        yield from _chunk(reply, {"tool_calls": [_chat_call(reply)]})


def _chat_piece(reply: Reply, text: str) -> Iterator[Event]:
    yield from _chunk(reply, {"content": text})


def _chat_finish(reply: Reply) -> str:
    return "tool_calls" if isinstance(reply, Call) else "stop"


def _end_chat(reply: Reply) -> Iterator[Event]:
    yield from _chunk(reply, {}, _chat_finish(reply))
    yield None, "[DONE]"


def _whole_chat(reply: Reply) -> object:
    message: dict[str, object] = {"role": "assistant", "content": _joined(reply)}
    if isinstance(reply, Call):
        message["tool_calls"] = [_chat_call(reply)]
    choice = {"index": 0, "message": message, "finish_reason": _chat_finish(reply)}
    return {
        "id": f"chat_{reply.id}",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [choice],
        "usage": _CHAT_USAGE,
    }


# Gemini


def _read_gemini(body: Json) -> Question:
    def told() -> Iterator[tuple[Said, str]]:
        for content in body.get("contents", []):
            for part in content.get("parts", []):
                if "functionResponse" in part:
                    yield "tool", json.dumps(part["functionResponse"].get("response"))
            if content.get("role", "user") == "user":
                yield "user", _text(content.get("parts"))

    declared = [
        tool for group in body.get("tools", []) for tool in group.get("functionDeclarations", [])
    ]
    tools = (
        Tool(tool["name"], tool.get("parametersJsonSchema") or tool.get("parameters") or {})
        for tool in declared
    )
    return Question.of(told(), tools, stream=True)


def _candidate(parts: list[object], finish: str | None = None) -> dict[str, object]:
    candidate: dict[str, object] = {"index": 0, "content": {"role": "model", "parts": parts}}
    answer: dict[str, object] = {"candidates": [candidate], "modelVersion": "scripted"}
    if finish is not None:
        candidate["finishReason"] = finish
        counts = ("promptTokenCount", "candidatesTokenCount", "totalTokenCount")
        answer["usageMetadata"] = dict.fromkeys(counts, 10)
    return answer


def _function_call(reply: Call) -> dict[str, object]:
    return {"functionCall": {"name": reply.tool, "args": dict(reply.arguments)}}


def _begin_gemini(reply: Reply) -> Iterator[Event]:
    if isinstance(reply, Call):
        yield None, _candidate([_function_call(reply)])


def _gemini_piece(_reply: Reply, text: str) -> Iterator[Event]:
    yield None, _candidate([{"text": text}])


def _end_gemini(_reply: Reply) -> Iterator[Event]:
    yield None, _candidate([{"text": ""}], "STOP")


def _whole_gemini(reply: Reply) -> object:
    part: object = _function_call(reply) if isinstance(reply, Call) else {"text": _joined(reply)}
    return _candidate([part], "STOP")


MESSAGES = Dialect(_read_messages, _begin_message, _message_piece, _end_message, _whole_message)
RESPONSES = Dialect(
    _read_responses, _begin_response, _response_piece, _end_response, _whole_response
)
CHAT = Dialect(_read_chat, _begin_chat, _chat_piece, _end_chat, _whole_chat)
GEMINI = Dialect(_read_gemini, _begin_gemini, _gemini_piece, _end_gemini, _whole_gemini)
