"""How one agent is started: where it works, and where it refuses to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from app.errors import AgentNotStarted
from tests.unit.acp.helpers import Bench, scripted
from tests.unit.acp.test_session import begun, told

OBEYS = (".trap", "trap.json")

# Tells the folder that it was given, in whichever way a conversation began.
FOLDERS = """
given = []
def new(message):
    given.append(message["params"]["cwd"])
    answer(message, sessionId="s1")
def load(message):
    given.append(message["params"]["cwd"])
    answer(message)
def prompt(message):
    say(json.dumps([*given, os.getcwd()]))
    answer(message, stopReason="end_turn")
"""


@pytest.mark.parametrize("known", [None, "s1"], ids=["new", "loaded"])
@pytest.mark.parametrize(("slash", "end"), [(True, "/"), (False, "")])
async def test_an_agent_is_told_its_folder_with_a_slash_at_the_end_where_that_is_wanted(
    bench: Bench, known: str | None, slash: bool, end: str
) -> None:
    workbench = bench(scripted(FOLDERS), trailing_slash=slash)
    opened = await begun(workbench, known)

    heard = await told(opened.session, "go")

    assert orjson.loads(heard.text) == [f"{workbench.workspace}{end}", str(workbench.workspace)]
    await opened.session.close()


def _file(path: Path) -> None:
    path.write_text("{}")


def _broken_link(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.parametrize("name", OBEYS)
@pytest.mark.parametrize("make", [_file, Path.mkdir, _broken_link])
async def test_an_agent_is_not_started_where_it_would_obey_the_checkout(
    bench: Bench, name: str, make: object
) -> None:
    workbench = bench(obeys=OBEYS)
    assert callable(make)
    make(workbench.workspace / name)

    with pytest.raises(AgentNotStarted, match=f"the checkout contains {name}, which it would obey"):
        await begun(workbench)

    assert workbench.processes.records == []


async def test_an_agent_that_obeys_some_files_starts_where_there_are_none(bench: Bench) -> None:
    workbench = bench(obeys=OBEYS)
    (workbench.workspace / "src").mkdir()
    (workbench.workspace / "src" / "trap.json").touch()

    opened = await begun(workbench)

    assert opened.how == "new"
    await opened.session.close()


def test_a_bridge_imports_the_sdk_only_after_its_port_listens() -> None:
    look = "import sys, app.main.bridge; print('acp' in sys.modules)"

    found = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, timeout=30, check=True
    )

    assert found.stdout.strip() == "False"
