"""The scripted model: the same answers in every dialect, and a transcript of what was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest

from tests.agents.model import Model
from tests.agents.script import Call, Question, Said, Tool, Words, reply

BOUND = 5.0
SCHEMA = {
    "type": "object",
    "properties": {"command": {"type": "string"}, "description": {"type": "string"}},
    "required": ["command", "description"],
}


def _messages(told: Sequence[str], *, stream: bool) -> tuple[str, dict[str, Any]]:
    messages = [{"role": "user", "content": [{"type": "text", "text": each}]} for each in told]
    tools = [{"name": "Bash", "input_schema": SCHEMA}]
    return "/v1/messages", {"messages": messages, "tools": tools, "stream": stream}


def _responses(told: Sequence[str], *, stream: bool) -> tuple[str, dict[str, Any]]:
    items = [{"role": "user", "content": [{"type": "input_text", "text": each}]} for each in told]
    tools = [{"type": "function", "name": "shell", "parameters": SCHEMA}]
    return "/v1/responses", {"input": items, "tools": tools, "stream": stream}


def _chat(told: Sequence[str], *, stream: bool) -> tuple[str, dict[str, Any]]:
    messages = [{"role": "user", "content": each} for each in told]
    tools = [{"type": "function", "function": {"name": "bash", "parameters": SCHEMA}}]
    return "/v1/chat/completions", {"messages": messages, "tools": tools, "stream": stream}


def _gemini(told: Sequence[str], *, stream: bool) -> tuple[str, dict[str, Any]]:
    contents = [{"role": "user", "parts": [{"text": each}]} for each in told]
    declared = [{"name": "run_shell_command", "parametersJsonSchema": SCHEMA}]
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    body = {"contents": contents, "tools": [{"functionDeclarations": declared}]}
    return f"/v1beta/models/any:{method}", body


DIALECTS = [_messages, _responses, _chat, _gemini]
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


@pytest.fixture
def model() -> Iterator[Model]:
    with Model() as made:
        yield made


def asked(model: Model, dialect: Any, *told: str, stream: bool = True) -> str:
    path, body = dialect(told, stream=stream)
    answer = httpx.post(f"{model.url}{path}", json=body, trust_env=False, timeout=BOUND)
    assert answer.status_code == 200
    return answer.text


@every_dialect
def test_words_are_streamed_piece_by_piece_and_kept_in_the_transcript(
    model: Model, dialect: Any
) -> None:
    answer = asked(model, dialect, "say one two three")

    events = [line for line in answer.splitlines() if line.startswith("data: ")]
    places = [[word in event for event in events].index(True) for word in ("one", "two", "three")]
    assert places == sorted(set(places))
    assert model.heard("say one two three")
    assert not model.heard("say four")


@every_dialect
def test_a_command_becomes_a_call_of_the_tool_that_is_offered(model: Model, dialect: Any) -> None:
    streamed = asked(model, dialect, "run touch file.txt")
    whole = asked(model, dialect, "run touch file.txt", stream=False)

    assert "touch file.txt" in streamed
    assert "touch file.txt" in json.dumps(json.loads(whole))
    assert "Fine." not in streamed + whole


@every_dialect
def test_an_endless_answer_holds_until_the_agent_hangs_up(model: Model, dialect: Any) -> None:
    path, body = dialect(["slow 60"], stream=True)
    with httpx.stream(
        "POST", f"{model.url}{path}", json=body, trust_env=False, timeout=BOUND
    ) as answer:
        lines = answer.iter_lines()
        assert next(line for line in lines if "No hurry." in line)
        assert not model.cut.is_set()

    assert model.cut.wait(BOUND)


def test_what_was_said_before_is_recalled_and_nothing_else() -> None:
    question = Question.of(
        [("user", "say swordfish"), ("user", "<reminder> be nice"), ("user", "recall")],
        [],
        stream=True,
    )

    answer = reply(question)

    assert isinstance(answer, Words)
    assert "".join(answer.pieces) == "You told me:\n- say swordfish"


def test_a_command_that_a_sandbox_stopped_is_asked_for_once_more_outside_of_it() -> None:
    schema = {
        "properties": {
            "cmd": {"type": "string"},
            "sandbox_permissions": {"type": "string"},
            "justification": {"type": "string"},
        }
    }
    tools = [Tool("exec_command", schema)]
    stopped: list[tuple[Said, str]] = [("user", "run touch x"), ("tool", "not permitted")]

    second = reply(Question.of(stopped, tools, stream=True))
    third = reply(Question.of([*stopped, ("tool", "not permitted")], tools, stream=True))

    assert isinstance(second, Call)
    assert second.arguments["cmd"] == "touch x"
    assert second.arguments["sandbox_permissions"] == "require_escalated"
    assert isinstance(third, Words)


def test_a_path_that_no_agent_should_ask_for_is_refused_and_noted(model: Model) -> None:
    answer = httpx.get(f"{model.url}/telemetry", trust_env=False, timeout=BOUND)

    assert answer.status_code == 404
    assert model.strange == ["GET /telemetry"]
