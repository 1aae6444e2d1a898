"""Who answers an agent: a rule, or the person at the terminal."""

from __future__ import annotations

import asyncio
import io
import os
import pty
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from app.cli.answers import Allow, KeyboardAnswers, Question, RuleAnswers, match
from app.server.shapes import OptionOut
from app.terminal.screen import PlainLines, Screen

OPTIONS = [
    OptionOut(id="allow", name="Allow once", kind="allow_once"),
    OptionOut(id="always", name="Allow always", kind="allow_always"),
    OptionOut(id="no", name="Reject", kind="reject_once"),
]
CHOICE = [
    OptionOut(id="option-1", name="Tea", kind="allow_once"),
    OptionOut(id="option-2", name="Coffee", kind="allow_once"),
]
SECONDS = 5.0


class Shown(io.StringIO):
    """What was shown, and an event whenever there is more."""

    def __init__(self) -> None:
        super().__init__()
        self.more = asyncio.Event()

    def write(self, text: str) -> int:
        self.more.set()
        return super().write(text)


@dataclass
class Desk:
    """A terminal with a person at it: what they see, and their keyboard."""

    shown: Shown
    person: KeyboardAnswers
    keys: int

    def type(self, text: str) -> None:
        os.write(self.keys, text.encode())

    async def sees(self, text: str, times: int = 1) -> None:
        async with asyncio.timeout(SECONDS):
            while self.shown.getvalue().count(text) < times:
                self.shown.more.clear()
                await self.shown.more.wait()


@pytest.fixture
def desk() -> Iterator[Desk]:
    keys, keyboard = pty.openpty()
    shown = Shown()
    yield Desk(shown, KeyboardAnswers(Screen(io.StringIO(), PlainLines(shown)), keyboard), keys)
    os.close(keys)
    os.close(keyboard)


def question(options: list[OptionOut]) -> Question:
    return Question("demo", "Run `ls`", options, ("$ ls",))


@pytest.mark.parametrize(
    ("allow", "options", "chosen"),
    [
        (Allow.ONCE, OPTIONS, "allow"),
        (Allow.REJECT, OPTIONS, "no"),
        (None, OPTIONS, "no"),
        (Allow.ONCE, OPTIONS[1:], "no"),
        (Allow.ONCE, CHOICE, "option-1"),
        (None, CHOICE, None),
        (Allow.REJECT, [], None),
    ],
)
async def test_a_rule_allows_once_if_it_says_so_and_else_rejects(
    allow: Allow | None, options: list[OptionOut], chosen: str | None
) -> None:
    screen = Screen(io.StringIO(), PlainLines(io.StringIO()))

    assert await RuleAnswers(screen, allow).choose(question(options)) == chosen


@pytest.mark.parametrize("allow", [Allow.ONCE, Allow.REJECT, None])
async def test_no_rule_decides_whether_a_limit_or_a_budget_counts(allow: Allow | None) -> None:
    err = io.StringIO()
    pause = Question("demo", "demo has spent $2.00. Go on?", OPTIONS, kind="pause")

    assert await RuleAnswers(Screen(io.StringIO(), PlainLines(err)), allow).choose(pause) is None

    assert err.getvalue() == "? demo asks: demo has spent $2.00. Go on?\n"


async def test_where_no_person_is_a_limit_that_answers_itself_is_waited_for() -> None:
    limit = Question("demo", "It goes on by itself then.", OPTIONS, kind="pause", resumes=True)
    rule = RuleAnswers(Screen(io.StringIO(), PlainLines(io.StringIO())), None)

    choosing = asyncio.ensure_future(rule.choose(limit))
    await asyncio.wait([choosing], timeout=0)

    assert not choosing.done()
    choosing.cancel()


async def test_a_question_is_not_said_to_be_answered_by_allowing() -> None:
    err = io.StringIO()
    colour = Question("demo", "Which colour?", OPTIONS, kind="question")

    assert await RuleAnswers(Screen(io.StringIO(), PlainLines(err)), None).choose(colour) == "no"

    assert err.getvalue().endswith("  Reject (no one is at the terminal)\n")


async def test_without_a_rule_it_is_said_how_to_allow() -> None:
    err = io.StringIO()

    await RuleAnswers(Screen(io.StringIO(), PlainLines(err)), None).choose(question(OPTIONS))

    assert "? demo asks: Run `ls`\n  $ ls\n" in err.getvalue()
    assert "--allow once" in err.getvalue()


@pytest.mark.parametrize(
    ("typed", "chosen"),
    [
        ("1", "allow"),
        (" 3 ", "no"),
        ("allow ONCE", "allow"),
        ("always", "always"),
        ("", None),
        ("4", None),
        ("yes", None),
    ],
)
def test_an_option_is_meant_by_its_number_name_or_id(typed: str, chosen: str | None) -> None:
    assert match(typed, OPTIONS) == chosen


async def test_a_person_is_asked_again_until_an_option_fits(desk: Desk) -> None:
    async with asyncio.TaskGroup() as group:
        choosing = group.create_task(desk.person.choose(question(OPTIONS)))
        await desk.sees("Answer (1-3)")
        desk.type("perhaps\n")
        await desk.sees("Answer (1-3)", times=2)
        desk.type("2\n")

    assert choosing.result() == "always"


async def test_what_was_typed_before_the_question_is_no_answer(desk: Desk) -> None:
    desk.type("1\n")

    async with asyncio.TaskGroup() as group:
        choosing = group.create_task(desk.person.choose(question(OPTIONS)))
        await desk.sees("Answer (1-3)")
        desk.type("3\n")

    assert choosing.result() == "no"


@pytest.mark.parametrize(("options", "chosen"), [(OPTIONS, "no"), (CHOICE, None)])
async def test_the_end_of_the_input_rejects(
    desk: Desk, options: list[OptionOut], chosen: str | None
) -> None:
    async with asyncio.TaskGroup() as group:
        choosing = group.create_task(desk.person.choose(question(options)))
        await desk.sees("Answer")
        desk.type("\x04")

    assert choosing.result() == chosen


async def test_words_answer_a_question_that_takes_them(desk: Desk) -> None:
    free = Question("demo", "Which colour?", CHOICE, free_text=True)
    answer = asyncio.create_task(desk.person.choose(free))
    await desk.sees("Answer (1-2, or in words): ")
    desk.type("a light blue\n")

    assert await answer == "a light blue"
