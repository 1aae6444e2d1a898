"""Forms of agents: what people are asked, which answers fit, and what the agent gets."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import orjson
import pytest
from acp.schema import ElicitationFormSessionMode, ElicitationSchema, ElicitationUrlSessionMode
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AnyUrl

from app.acp.audience import Audience
from app.acp.client import BridgeAcpClient
from app.acp.elicitation import (
    MAX_FIELDS,
    MAX_TRIES,
    FormField,
    Unfit,
    fields_of,
    question,
    value_of,
)
from app.model.updates import AskRequest
from tests.unit.acp.helpers import Bench, Memory, scripted
from tests.unit.acp.test_session import opened, told

pytestmark = pytest.mark.anyio

COLOURS = [{"const": "#f00", "title": "Red"}, {"const": "#00f", "title": "Blue"}]


class Answers(Memory):
    """A person who gives one answer after another."""

    def __init__(self, *answers: str | None) -> None:
        super().__init__()
        self.answers = list(answers)

    async def on_ask(self, request: AskRequest) -> str | None:
        self.asked.append(request)
        return self.answers.pop(0)


def form(*required: str, **properties: Any) -> ElicitationSchema:
    return ElicitationSchema.model_validate({"properties": properties, "required": list(required)})


def field(required: bool = False, **schema: Any) -> FormField:
    fields = fields_of(form(*(["it"] if required else []), it=schema))
    assert fields is not None
    return fields[0]


async def filled(
    person: Answers, schema: ElicitationSchema, *, session: str = "s1"
) -> dict[str, Any]:
    audience = Audience(Memory(), lambda _: None)
    audience.session_id = "s1"
    audience.listen(person)
    mode = ElicitationFormSessionMode(session_id=session, requested_schema=schema)
    answer = await BridgeAcpClient(audience).create_elicitation("Well?", mode, some_meta=1)
    dumped: dict[str, Any] = answer.model_dump(exclude_none=True)
    return dumped


async def test_a_form_is_asked_field_by_field_in_its_order() -> None:
    person = Answers("Ann", "7", "2.5", "option-1", "option-2")
    schema = form(
        "name",
        name={"type": "string", "title": "Name"},
        age={"type": "integer"},
        size={"type": "number"},
        sure={"type": "boolean"},
        colour={"type": "string", "oneOf": COLOURS},
    )

    answer = await filled(person, schema)

    assert answer == {
        "action": "accept",
        "content": {"name": "Ann", "age": 7, "size": 2.5, "sure": True, "colour": "#00f"},
    }
    assert [request.title for request in person.asked] == [
        "Well?\nName",
        "Well?\nage",
        "Well?\nsize",
        "Well?\nsure",
        "Well?\ncolour",
    ]
    assert all(request.kind == "question" for request in person.asked)
    assert [request.free_text for request in person.asked] == [True, True, True, False, False]
    assert [option.name for option in person.asked[4].options] == ["Red", "Blue", "Skip"]


async def test_what_is_optional_may_be_skipped_and_what_is_required_declined() -> None:
    optional, required = form(it={"type": "string"}), form("it", it={"type": "string"})

    assert await filled(Answers("skip"), optional) == {"action": "accept", "content": {}}
    assert await filled(Answers("decline"), required) == {"action": "decline"}
    assert await filled(Answers(None), optional) == {"action": "cancel"}


async def test_a_field_that_is_optional_takes_the_word_decline_for_a_word() -> None:
    answer = await filled(Answers("decline"), form(it={"type": "string"}))

    assert answer["content"] == {"it": "decline"}


async def test_an_answer_that_does_not_fit_is_asked_for_again() -> None:
    person = Answers("many", "3")

    answer = await filled(person, form(it={"type": "integer"}))

    assert answer["content"] == {"it": 3}
    assert person.asked[1].title == "That is not a whole number.\nWell?"


async def test_who_never_answers_well_is_not_asked_for_ever() -> None:
    person = Answers(*["many"] * MAX_TRIES)

    assert await filled(person, form(it={"type": "integer"})) == {"action": "cancel"}


async def test_a_form_without_fields_is_a_plain_question() -> None:
    assert await filled(Answers("done"), form()) == {"action": "accept", "content": {}}
    assert await filled(Answers("decline"), form()) == {"action": "decline"}


async def test_a_form_that_nobody_can_fill_in_is_declined() -> None:
    strange = form("it", it={"type": "_voice"})
    endless = form(**{f"field{number}": {"type": "string"} for number in range(MAX_FIELDS + 1)})

    assert await filled(Answers(), strange) == {"action": "decline"}
    assert await filled(Answers(), endless) == {"action": "decline"}


async def test_a_form_of_another_session_is_none_of_ours() -> None:
    assert await filled(Answers(), form(), session="s2") == {"action": "cancel"}


async def test_words_of_ones_own_go_where_claude_wants_them() -> None:
    choice = {"type": "string", "title": "Colour", "oneOf": COLOURS}
    other = {"type": "string", "title": "Other", "description": "Type your own answer."}
    schema = form(question_0=choice, question_0_custom=other)

    own, chosen = Answers("something like sand"), Answers("blue")

    assert (await filled(own, schema))["content"] == {"question_0_custom": "something like sand"}
    assert (await filled(chosen, schema))["content"] == {"question_0": "#00f"}
    assert own.asked[0].free_text
    assert own.asked[0].title == "Well?"


@pytest.mark.parametrize("answer", ["done", "decline"])
async def test_an_address_is_shown_and_opened_by_the_person(answer: str) -> None:
    person = Answers(answer)
    audience = Audience(Memory(), lambda _: None)
    audience.listen(person)
    url = AnyUrl("https://example.com/device?code=AB-CD")
    mode = ElicitationUrlSessionMode(session_id="s1", elicitation_id="e", url=url)

    reply = await BridgeAcpClient(audience).create_elicitation("Enter AB-CD", mode)

    assert person.asked[0].title == f"Enter AB-CD\n{url}"
    assert reply.action == {"done": "accept", "decline": "decline"}[answer]


async def test_an_address_that_is_no_web_page_is_not_shown() -> None:
    audience = Audience(Memory(), lambda _: None)
    audience.listen(Answers())
    url = AnyUrl("javascript:alert(1)")
    mode = ElicitationUrlSessionMode(session_id="s1", elicitation_id="e", url=url)

    reply = await BridgeAcpClient(audience).create_elicitation("Click", mode)

    assert reply.action == "decline"


@pytest.mark.parametrize(
    ("schema", "answer", "value"),
    [
        ({"type": "array", "items": {"anyOf": COLOURS}}, "red, #00f", ["#f00", "#00f"]),
        ({"type": "array", "items": {"anyOf": COLOURS}}, "option-2", ["#00f"]),
        ({"type": "array", "items": {"type": "string", "enum": ["a", "b, c"]}}, "b, c", ["b, c"]),
        ({"type": "string", "enum": ["a", "b"]}, "B", "b"),
        ({"type": "string", "minLength": 2}, " ab ", "ab"),
        ({"type": "boolean"}, "no", False),
        ({"type": "number", "minimum": 1}, "1e3", 1000.0),
    ],
)
def test_answers_that_fit(schema: dict[str, Any], answer: str, value: object) -> None:
    assert value_of(field(**schema), answer) == {"it": value}


@pytest.mark.parametrize(
    ("schema", "answer", "reason"),
    [
        ({"type": "array", "items": {"anyOf": COLOURS}}, "red, sand", "not one of the answers"),
        ({"type": "array", "items": {"anyOf": COLOURS}, "minItems": 2}, "red", "at least 2"),
        ({"type": "array", "items": {"anyOf": COLOURS}, "maxItems": 1}, "red, blue", "at most 1"),
        ({"type": "string", "enum": ["a", "b"]}, "c", "not one of the answers: a, b"),
        ({"type": "string", "minLength": 2}, " a ", "too short"),
        ({"type": "string", "maxLength": 2}, "abc", "too long"),
        ({"type": "boolean"}, "perhaps", "not one of the answers: Yes, No"),
        ({"type": "number", "minimum": 1}, "0", "too small"),
        ({"type": "number", "maximum": 1}, "2", "too large"),
        ({"type": "number"}, "nan", "not a number"),
        ({"type": "integer"}, "2.5", "not a whole number"),
    ],
)
def test_answers_that_do_not_fit(schema: dict[str, Any], answer: str, reason: str) -> None:
    with pytest.raises(Unfit, match=reason):
        value_of(field(**schema), answer)


SCHEMAS: Sequence[dict[str, Any]] = (
    {"type": "string"},
    {"type": "string", "enum": ["a", "b"]},
    {"type": "integer", "minimum": -5, "maximum": 5},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
)


@given(st.sampled_from(SCHEMAS), st.booleans(), st.text() | st.integers().map(str))
def test_whatever_people_say_gives_a_fitting_value_or_a_reason(
    schema: dict[str, Any], required: bool, answer: str
) -> None:
    value: dict[str, Any] = {}
    with suppress(Unfit):
        value = dict(value_of(field(required, **schema), answer))

    assert set(value) <= {"it"}
    assert orjson.loads(orjson.dumps(value)) == value


def test_equal_questions_hash_equally_and_others_do_not() -> None:
    colour, sure = field(type="string", oneOf=COLOURS), field(type="boolean")

    again = question("Well?", colour, note="Once more.")

    assert question("Well?", colour).arguments_hash == again.arguments_hash
    assert question("Well?", colour).arguments_hash != question("Well?", sure).arguments_hash


def test_a_field_without_a_title_is_told_apart_by_its_name() -> None:
    fields = fields_of(form(user={"type": "string"}, host={"type": "string", "title": "Host"}))
    assert fields is not None

    assert [question("Where?", each, alone=False).title for each in fields] == [
        "Where?\nuser",
        "Where?\nHost",
    ]
    assert question("", fields[0]).title == "user"


async def test_the_demo_agent_asks_in_a_form(bench: Bench) -> None:
    agent = await opened(bench())
    person = Answers("option-2")

    heard = await told(agent, "ask Which colour? | Red | Blue", person)

    assert person.asked[0].title == "Which colour?"
    assert [option.name for option in person.asked[0].options] == ["Red", "Blue", "Decline"]
    assert heard.text == "You chose Blue."
    await agent.close()


async def test_a_question_that_is_declined_or_withdrawn_reaches_the_agent(bench: Bench) -> None:
    agent = await opened(bench())

    declined = await told(agent, "ask Which colour? | Red | Blue", Answers("decline"))
    withdrawn = await told(agent, "ask Which colour? | Red | Blue", Answers(None))

    assert declined.text == "Nothing was chosen."
    assert withdrawn.end.stop_reason == "cancelled"
    await agent.close()


async def test_a_form_that_breaks_the_protocol_is_answered_with_an_error(bench: Bench) -> None:
    agent = await opened(
        bench(
            scripted("""
def prompt(message):
    global asked
    asked = message
    send(id="e", method="elicitation/create", params={"sessionId": "s1", "mode": "form",
         "message": 7, "requestedSchema": "none"})
def reply(message):
    say(str(message["error"]["code"]))
    answer(asked, stopReason="end_turn")
""")
        )
    )

    assert (await told(agent, "go")).text == "-32602"
    await agent.close()
