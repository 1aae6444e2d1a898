"""Who an agent is: told by entry, by file and by page, to real processes, once per ACP session."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest

from tests.support.observe import PATIENCE, Observed, demo
from tests.support.platform import Platform

pytestmark = pytest.mark.one_database

OPENING = '<instructions from="the operator of this bridge">'
IDENTITY = "---\nname: Ada\nemoji: \N{OWL}\ncolour: teal\n---\nYou review code.\n"
AGENTS = {
    "plain": demo(),
    "entry": demo(display_name="Reviewer", description="Finds faults.", prompt="You are careful."),
    "system": demo("1,system-prompt", prompt="You obey the system."),
    "blank": demo("1,no-load", description="Forgets everything."),
    "hidden": demo(visible=False),
}


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    folder = tmp_path_factory.mktemp("personas")
    with Platform() as platform, Observed(folder, platform, agents=AGENTS, hooks=False) as bridge:
        yield bridge


def put(bridge: Observed, path: str, text: str) -> dict[str, Any]:
    """Write a file over the API."""
    answer = bridge.http.put(f"/api/v1/{path}", json={"text": text})
    assert answer.status_code == 200, answer.text
    written: dict[str, Any] = answer.json()
    return written


def say(bridge: Observed, session: int, text: str) -> None:
    answer = bridge.http.post(f"/api/v1/sessions/{session}/messages", json={"text": text})
    assert answer.status_code == 202, answer.text


def turn(bridge: Observed, session: int, number: int) -> dict[str, Any]:
    """Wait for the end of a session's turn, counted from 1, and read it."""
    turns = bridge.ended(session, number)["turns"]
    found: dict[str, Any] = bridge.http.get(
        f"/api/v1/sessions/{session}/turns/{turns[number - 1]['id']}"
    ).json()
    assert found["state"] == "done", found
    return found


def ask(bridge: Observed, session: int, text: str, number: int) -> str:
    """Say something to a session and return the prompt of the turn that this became."""
    say(bridge, session, text)
    prompt: str = turn(bridge, session, number)["prompt"]
    return prompt


def received(bridge: Observed, session: int, agent: str, role: str = "user") -> list[list[str]]:
    """Read what the processes of a session say they were told, for each ACP session."""
    homes = bridge.data_dir / "session-homes" / f"{session}-{agent}" / ".agent-bridge-demo"
    files = sorted(homes.glob("*.jsonl"), key=lambda file: file.stat().st_mtime)
    records = [[json.loads(line) for line in file.read_text().splitlines()] for file in files]
    return [[each["text"] for each in told if each["role"] == role] for told in records]


def headings(text: str) -> list[str]:
    return re.findall(r"^# (.+)$", text, re.MULTILINE)


def kill_idle(bridge: Observed, session: int) -> None:
    """Kill the process of a session that idles, and wait until the bridge knows."""
    query = 'select "group" from process where session = ?'
    os.kill(bridge.rows(query, session)[0][0], signal.SIGKILL)
    bridge.wait(lambda: not bridge.rows(query, session), "it still counts as alive", PATIENCE)


def test_a_persona_by_entry_by_file_and_by_page_is_what_the_process_is_told_in_order(
    bridge: Observed,
) -> None:
    http = bridge.http
    by_entry = bridge.open_session("entry", "say hi")["id"]
    told = turn(bridge, by_entry, 1)["prompt"]
    assert headings(told) == ["Who you are", "Your colleagues"]
    assert "\n\nYou are careful.\n\n" in told
    assert "To ask one, use the tool `agents_message`." in told
    assert "- blank: Forgets everything.\n" in told
    assert "- plain\n" in told
    assert "hidden" not in told
    assert "Reviewer (" not in told

    put(bridge, "agents/entry/files/SOUL.md", "Be kind.")
    put(bridge, "agents/entry/files/TOOLS.md", "Use my own tools.")
    put(bridge, "agents/entry/files/MEMORY.md", "- Ann likes tea.")
    put(bridge, "files/AGENTS.md", "Run the tests.")
    put(bridge, "files/TOOLS.md", "Use the tools of all.")
    put(bridge, "files/USER.md", "The team in Berlin.")
    saved = http.post("/agents/entry/files/IDENTITY.md", data={"text": IDENTITY, "do": "save"})
    assert saved.status_code == 303, saved.text
    by_file = bridge.open_session("entry", "say hi\nsay there")["id"]

    told = turn(bridge, by_file, 1)["prompt"]
    parts = ["Who you are", "Your character", "How to work here", "Your tools"]
    parts += ["Who you work for", "What you remember", "Your colleagues"]
    assert headings(told) == parts
    first, opening, *rest = told.splitlines()
    assert first.startswith("[operator on web, ")
    assert opening == OPENING
    assert rest[-3:] == ["</instructions>", "say hi", "say there"]
    assert "Your name is Ada. Your emoji is \N{OWL}.\n\nYou review code.\n" in told
    assert "Use my own tools." in told
    assert "tools of all" not in told
    assert "careful" not in told
    assert received(bridge, by_file, "entry") == [[told]]

    page = unescape(http.get(f"/turns/{bridge.ended(by_file)['turns'][0]['id']}/prompt").text)
    assert told in page
    shown = http.get("/api/v1/agents/entry").json()
    assert (shown["display_name"], shown["emoji"]) == ("Reviewer", "\N{OWL}")


@pytest.mark.long
def test_what_an_agent_was_told_is_never_told_twice_and_what_changed_once(
    bridge: Observed,
) -> None:
    put(bridge, "agents/plain/files/SOUL.md", "Be brief.")
    session = bridge.open_session("plain", "say hi")["id"]
    assert turn(bridge, session, 1)["prompt"].count(OPENING) == 1

    assert OPENING not in ask(bridge, session, "say again", 2)
    kill_idle(bridge, session)
    assert OPENING not in ask(bridge, session, "say resumed", 3)

    put(bridge, "agents/plain/files/SOUL.md", "Be long.")
    told = ask(bridge, session, "say changed", 4)
    assert "[Your instructions changed. These parts replace what you were told before.]" in told
    assert headings(told) == ["Your character"]
    assert "Be long." in told
    assert "nstructions" not in ask(bridge, session, "say and no more", 5)
    assert bridge.http.delete("/api/v1/agents/plain/files/SOUL.md").status_code == 204
    told = ask(bridge, session, "say gone", 6)
    assert "[Your instructions changed. These parts no longer apply: Your character.]" in told

    say(bridge, session, "tell begun\nhold go")
    folder = bridge.workspace("plain", session)
    bridge.wait((folder / "begun").exists, "it did not begin", PATIENCE)
    bridge.kill()
    (folder / "go").touch()
    bridge.start()
    continued = turn(bridge, session, 7)
    assert continued["continued"]
    assert "nstructions" not in continued["prompt"]

    say(bridge, session, "new")
    new = "select generation from session where id = ?"
    bridge.wait(lambda: bridge.rows(new, session) == [(2,)], "it did not start over", PATIENCE)
    told = ask(bridge, session, "say new", 8)
    assert told.count(OPENING) == 1
    first, second = received(bridge, session, "plain")
    assert "".join(first).count(OPENING) == 2
    assert "".join(second).count(OPENING) == 1


def test_an_agent_that_lost_its_conversation_is_told_again(bridge: Observed) -> None:
    session = bridge.open_session("blank", "say hi")["id"]
    told = turn(bridge, session, 1)["prompt"]
    assert "\n\nYou are blank. Forgets everything.\n" in told
    kill_idle(bridge, session)

    told = ask(bridge, session, "say back", 2)

    assert told.count(OPENING) == 1
    assert told.index("Who you are") < told.index("the transcript of this conversation")
    assert [("".join(each)).count(OPENING) for each in received(bridge, session, "blank")] == [1, 1]


def test_an_agent_that_takes_a_system_prompt_gets_it_there_and_in_no_prompt(
    bridge: Observed,
) -> None:
    session = bridge.open_session("system", "say hi")["id"]
    first = turn(bridge, session, 1)
    assert "nstructions" not in first["prompt"]
    assert first["system_prompt"].startswith("# Who you are\n\nYou obey the system.\n\n")
    assert received(bridge, session, "system", "system") == [[first["system_prompt"]]]
    ask(bridge, session, "say again", 2)
    assert turn(bridge, session, 2)["system_prompt"] == ""

    put(bridge, "agents/system/files/SOUL.md", "Be loud.")
    told = ask(bridge, session, "say changed", 3)
    assert headings(told) == ["Your character"]
    assert "nstructions" not in ask(bridge, session, "say once", 4)

    kill_idle(bridge, session)
    put(bridge, "agents/system/files/SOUL.md", "Be quiet.")
    told = ask(bridge, session, "say resumed", 5)
    assert headings(told) == ["Your character"]
    assert turn(bridge, session, 5)["system_prompt"] == ""
    assert received(bridge, session, "system", "system") == [[first["system_prompt"]]]

    say(bridge, session, "new")
    new = "select generation from session where id = ?"
    bridge.wait(lambda: bridge.rows(new, session) == [(2,)], "it did not start over", PATIENCE)
    assert OPENING not in ask(bridge, session, "instructions", 6)
    again = turn(bridge, session, 6)["system_prompt"]
    assert "# Your character\n\nBe quiet." in again
    texts = bridge.http.get(f"/api/v1/sessions/{session}/transcript").json()["items"]
    assert again in [each["text"] for each in texts if each["kind"] == "text"]
    page = unescape(bridge.http.get(f"/turns/{turn(bridge, session, 6)['id']}/prompt").text)
    assert again in page


def test_files_are_listed_changed_and_brought_back_and_the_wrong_ones_refused(
    bridge: Observed,
) -> None:
    http, files = bridge.http, "/api/v1/agents/hidden/files"
    put(bridge, "agents/hidden/files/memory/2026-02-28.md", "noted")
    one = put(bridge, "agents/hidden/files/SOUL.md", "one")
    stale = {"text": "three", "expected": one["digest"]}
    put(bridge, "agents/hidden/files/SOUL.md", "two")

    assert [each["path"] for each in http.get(files).json()["items"]] == [
        "SOUL.md",
        "memory/2026-02-28.md",
    ]
    assert http.put(f"{files}/SOUL.md", json=stale).status_code == 409
    assert http.get(f"{files}/SOUL.md").json()["text"] == "two"
    assert http.post(f"{files}/SOUL.md/undo", json={}).json()["text"] == "one"
    kept = http.get(f"{files}/SOUL.md").json()["versions"]
    assert [each["gone"] for each in kept] == [False, False, True]
    for path in ("%2e%2e/AGENTS.md", "card.json", "memory/2026-02-30.md", "SOUL.md%2f", "USER.md"):
        refused = http.put(f"{files}/{path}", json={"text": "x"})
        assert refused.status_code == 422, path
        assert "is not a file of an agent. Use IDENTITY.md" in refused.json()["detail"]
    wrong = http.put(f"{files}/IDENTITY.md", json={"text": "---\nnmae: x\n---\n"})
    assert "Line 2: this is none of the keys. Write one of name" in wrong.json()["detail"]
    assert http.get(f"{files}/MEMORY.md").status_code == 404
    assert http.get("/api/v1/agents/nobody/files").status_code == 404


def test_a_file_spoilt_by_hand_is_told_of_everywhere_and_still_used(bridge: Observed) -> None:
    folder = bridge.data_dir / "agents" / "hidden"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "IDENTITY.md").write_text("---\nname: Eve\nage: 3\n---\nYou are Eve.")

    told = turn(bridge, bridge.open_session("hidden", "say hi")["id"], 1)["prompt"]
    page = unescape(bridge.http.get("/agents/hidden/files/IDENTITY.md").text)
    card = bridge.http.post("/api/v1/agents/hidden/probe").json()

    assert "Your name is Eve.\n\nYou are Eve.\n" in told
    problem = "Line 3: this is none of the keys. Write one of name, emoji, creature, vibe, colour"
    assert problem in page
    assert problem in unescape(bridge.http.get("/agents/hidden").text)
    (check,) = [each for each in card["checks"] if each["name"] == "files"]
    assert not check["ok"]
    assert problem in check["words"]
    fixed = {"text": IDENTITY, "do": "save"}
    assert bridge.http.post("/agents/hidden/files/IDENTITY.md", data=fixed).status_code == 303
    card = bridge.http.get("/api/v1/agents/hidden").json()
    assert "files" not in [each["name"] for each in card["checks"]]
    assert (card["display_name"], card["emoji"]) == ("Ada", "\N{OWL}")


def test_a_renamed_agent_keeps_its_files_and_a_removed_one_leaves_them_in_the_archive(
    bridge: Observed,
) -> None:
    http = bridge.http
    assert http.post("/api/v1/agents", json={"name": "guest", **demo()}).status_code == 201
    put(bridge, "agents/guest/files/SOUL.md", "I was here.")

    renamed = http.post("/api/v1/agents/guest/rename", json={"to": "friend"})
    assert renamed.status_code == 200
    assert http.get("/api/v1/agents/friend/files/SOUL.md").json()["text"] == "I was here."
    assert http.delete("/api/v1/agents/friend").status_code == 204

    archived = list((bridge.data_dir / "archive").glob("guest-*.files/SOUL.md"))
    assert [each.read_text() for each in archived] == ["I was here."]
    assert not (bridge.data_dir / "agents" / "guest").exists()
    assert http.get("/api/v1/agents/friend/files").status_code == 410
