"""Tools of memory: an agent reads and adds to its own, and people decide where they must."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.agents.files import AgentFiles
from app.features.memory import wording
from app.model.asks import LEAVE, TAKE
from app.vault import Vault
from tests.support.at_work import at_work, helping
from tests.support.desk import Desk, Rules, running_desk

pytestmark = pytest.mark.anyio

SECRET = "hunter2-hunter2"
TEAM = ("demo", "codex")
AUTO = Rules(agents=TEAM, memory="auto", secrets=(SECRET,))


def asks(desk: Desk) -> list[str]:
    return [p.content.text for p in desk.posts() if p.op == "create" and p.content.kind == "ask"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("memory_read", {}), ("memory_search", {"words": "x"}), ("memory_write", {"text": "x"})],
)
async def test_without_a_memory_every_tool_says_so(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    async with running_desk(tmp_path) as desk, at_work(desk) as demo:
        assert await demo.call(tool, **arguments) == {"error": wording.MEMORY_OFF}


async def test_a_note_is_kept_found_and_seen_by_its_own_agent_alone(tmp_path: Path) -> None:
    async with running_desk(tmp_path, rules=AUTO) as desk:
        files = AgentFiles(tmp_path, Vault())
        files.write("demo", "MEMORY.md", "Be brief.")
        files.write("codex", "MEMORY.md", "Only for Codex.")
        async with at_work(desk) as demo:
            kept = await demo.call("memory_write", text=f"- Staging is bluefin, {SECRET}.")
            again = await demo.call("memory_write", text=f"- Staging is bluefin, {SECRET}.")
            read = await demo.call("memory_read")
            found = await demo.call("memory_search", words="bluefin staging")
            none = await demo.call("memory_search", words="bluefin production")
            other_day = await demo.call("memory_read", day="2001-01-01")
        async with at_work(desk, place="t2", agent="codex") as codex:
            foreign = await codex.call("memory_read")
            unfound = await codex.call("memory_search", words="bluefin")

    assert kept == {"state": "kept"}
    assert again["note"] == wording.KNOWN_NOTE
    assert read["memory"] == "Be brief."
    (note,) = read["notes"]
    assert SECRET not in note["text"]
    assert found["notes"] == read["notes"]
    assert none["notes"] == other_day["notes"] == unfound["notes"] == foreign["notes"] == []
    assert foreign["memory"] == "Only for Codex."
    assert "memory" not in other_day


@pytest.mark.parametrize(("option", "left"), [(TAKE, 1), (LEAVE, 0)])
async def test_where_people_decide_a_note_is_kept_only_if_they_say_so(
    tmp_path: Path, option: str, left: int
) -> None:
    rules = Rules(agents=TEAM, memory="ask")
    async with running_desk(tmp_path, rules=rules) as desk:
        async with at_work(desk) as demo:
            asked = await demo.call("memory_write", text="- Friday is release day.")
            await demo.call("memory_write", text="- Friday is release day.")
            before = await demo.call("memory_read")
            await desk.until(lambda: len(asks(desk)) == 1)
            await desk.answer(1, option)
            await desk.memory.write()
            after = await demo.call("memory_read")

        assert asked["state"] == "asked"
        assert before["notes"] == []
        assert len(after["notes"]) == left
        assert len(asks(desk)) == 1


async def test_after_words_of_others_people_decide_on_notes(tmp_path: Path) -> None:
    async with running_desk(tmp_path, rules=AUTO) as desk, at_work(desk) as demo:
        own = await demo.call("memory_write", text="- Told by Ann.")
        await demo.call("place_history")
        read = await demo.call("memory_write", text="- Read in the place.")

        assert (own["state"], read["state"]) == ("kept", "asked")


async def test_what_an_agent_notes_for_another_one_is_for_people(tmp_path: Path) -> None:
    async with (
        running_desk(tmp_path, rules=AUTO) as desk,
        at_work(desk) as demo,
        helping(desk, demo) as codex,
    ):
        assert (await codex.call("memory_write", text="- Demo said so."))["state"] == "asked"
        await desk.until(lambda: bool(asks(desk)))
        await desk.answer(1, TAKE)
        await desk.memory.write()

        assert len((await codex.call("memory_read"))["notes"]) == 1
        assert (await demo.call("memory_read"))["notes"] == []
        assert (await demo.call("memory_write", text="- Codex said so."))["state"] == "asked"


async def test_proposals_and_what_is_returned_are_bounded(tmp_path: Path) -> None:
    rules = Rules(memory="ask")
    async with running_desk(tmp_path, rules=rules) as desk, at_work(desk) as demo:
        AgentFiles(tmp_path, Vault()).write("demo", "MEMORY.md", "x" * 30_000)
        made = [await demo.call("memory_write", text=f"- Note {n}.") for n in range(4)]
        read = await demo.call("memory_read")

        assert [each.get("state") for each in made] == ["asked", "asked", "asked", None]
        assert "3 of your proposals" in made[-1]["error"]
        assert read["memory"].endswith("[... 10000 more characters]")
