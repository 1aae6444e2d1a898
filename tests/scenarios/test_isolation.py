"""What an agent sees: an allow-list environment and, with isolation, nothing but its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.children.environment import PROXIES
from app.children.sandbox import Unavailable, find_bubblewrap
from tests.support import postgres
from tests.support.bridge import ROOT
from tests.support.observe import PATIENCE, Observed, demo
from tests.support.platform import Platform

pytestmark = pytest.mark.one_database

FOUND = find_bubblewrap(os.environ["PATH"])
needs_bubblewrap = pytest.mark.skipif(
    isinstance(FOUND, Unavailable), reason=f"{FOUND} cannot be tried without bubblewrap"
)

ALLOWED = {
    *("PATH", "HOME", "LANG", "TZ", "TERM", "USER", "LOGNAME", "SHELL"),
    *("AGENT_BRIDGE_PROCESS", "AGENT_BRIDGE_DEMO_FAULTS", "MODEL_API_KEY"),
    "AGENT_BRIDGE_OUTGOING",
    *PROXIES,
    "NODE_USE_ENV_PROXY",
    "GIT_CONFIG_SYSTEM",  # for a user of its own, where the bridge is root
    *("PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"),  # the shell's and Python's own
}
FOREIGN = {
    "GITHUB_TOKEN": "canary-of-github",
    "AWS_SECRET_ACCESS_KEY": "canary-of-aws",
    "OPENAI_API_KEY": "canary-of-openai",
    "SSH_AUTH_SOCK": "/canary/of/ssh",
    "PYTHONPATH": "/canary/of/python",
    "XDG_CONFIG_HOME": "/canary/of/config",
}
ISOLATED = "isolated (bubblewrap), network: internet only"
IN_DOTENV = "canary-in-dotenv"
IN_HOME = "canary-in-the-home-of-a-person"
IN_SECOND = "canary-in-the-home-of-second"
IN_PROCESS = "canary-in-the-process"


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    folder = tmp_path_factory.mktemp("isolation")
    free: dict[str, Any] = {"mode": "free", "env_passthrough": ["MODEL_API_KEY"]}
    apart = {"sandbox": "none"} if isinstance(FOUND, Unavailable) else {"sandbox": "bubblewrap"}
    agents = {"demo": demo(**free, **apart), "second": demo(**free, **apart), "open": demo(**free)}
    settings = {
        "MODEL_API_KEY__DEMO": "canary-of-demo",
        "MODEL_API_KEY__SECOND": "canary-of-second",
        "BRIDGE_SECRET_KEY": "canary-of-the-bridge-itself-0123456789",
        "LOG_LEVEL": "debug",
        **FOREIGN,
    }
    dotenv = folder / ".env"
    dotenv.write_text(f"# {IN_DOTENV}\nRETENTION_DAYS=7\n")
    with pytest.MonkeyPatch.context() as patch, Platform() as platform:
        patch.setenv("CANARY", IN_PROCESS)
        observed = Observed(
            folder, platform, agents=agents, settings=settings, dotenv=dotenv, wrapper=[]
        )
        with observed as bridge:
            (folder / "person" / "notes").write_text(IN_HOME)
            (bridge.data_dir / "homes" / "second" / "notes").write_text(IN_SECOND)
            yield bridge


def environment(bridge: Observed, agent: str) -> dict[str, str]:
    """Let an agent write its whole environment into its workspace, where nothing is redacted."""
    place = f"environment of {agent}"
    assert "status 0" in bridge.ask(place, "run env > env.txt", agent)["text"]
    file = bridge.workspace(agent, bridge.session(place, agent)) / "env.txt"
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


@pytest.mark.long
def test_an_agents_environment_is_the_allow_list_and_its_own_keys(bridge: Observed) -> None:
    found = environment(bridge, "demo")

    assert set(found) - ALLOWED == set()
    assert found["MODEL_API_KEY"] == "canary-of-demo"
    home = f"{bridge.session('environment of demo', 'demo')}-demo"
    assert found["HOME"] == str(bridge.data_dir / "session-homes" / home)
    assert [value for value in found.values() if "canary" in value] == ["canary-of-demo"]


def test_no_agent_gets_the_key_of_another(bridge: Observed) -> None:
    assert environment(bridge, "second")["MODEL_API_KEY"] == "canary-of-second"
    assert "MODEL_API_KEY" not in environment(bridge, "open")


def hidden(bridge: Observed) -> dict[str, str]:
    """List what no agent may read, with what gives it away."""
    assert bridge.process is not None
    return {
        str(bridge.dotenv): IN_DOTENV,
        **({} if postgres.is_wanted() else {str(bridge.data_dir / "bridge.db"): "SQLite format 3"}),
        str(bridge.data_dir / "homes" / "second" / "notes"): IN_SECOND,
        str(bridge.folder / "person" / "notes"): IN_HOME,
        f"/proc/{bridge.process.pid}/environ": IN_PROCESS,
    }


def read_by(bridge: Observed, agent: str) -> dict[str, bool]:
    """Let an agent try to read all of it; tells what it could."""
    seen = {path: bridge.ask("reading", f"read {path}", agent)["text"] for path in hidden(bridge)}
    return {path: sign in seen[path] for path, sign in hidden(bridge).items()}


@needs_bubblewrap
def test_an_isolated_agent_reads_nothing_of_the_bridge_of_others_or_of_the_person(
    bridge: Observed,
) -> None:
    assert read_by(bridge, "demo") == dict.fromkeys(hidden(bridge), False)


@needs_bubblewrap
def test_an_isolated_agent_lays_files_ready_where_no_other_agent_can(bridge: Observed) -> None:
    assert "Here is report.md." in bridge.ask("files", "give report.md It is well.", "demo")["text"]
    (kept,) = bridge.data_dir.glob("uploads/*/report.md")
    assert kept.read_text() == "It is well.\n"

    ready = Path(environment(bridge, "demo")["AGENT_BRIDGE_OUTGOING"])
    assert ready.is_dir()
    said = bridge.ask("another", f"run echo x > {ready}/of-second.txt", "second")["text"]
    assert "status 0" not in said
    assert not (ready / "of-second.txt").exists()


def test_what_is_hidden_could_be_read_without_isolation(bridge: Observed) -> None:
    could = read_by(bridge, "open")

    # The last is the bridge's own /proc: undumpable, it is closed to everybody but root.
    assert all(list(could.values())[:-1])
    assert list(could.values())[-1] == (os.geteuid() == 0)


@needs_bubblewrap
def test_an_isolated_agent_finds_no_secret_wherever_it_looks(bridge: Observed) -> None:
    look = f"run grep -rsl 'canary[-]in' {bridge.folder} /proc/[0-9]*/environ | wc -l"

    seen = bridge.ask("looking", look, "demo")

    assert seen["text"].endswith("ended with status 0.\n\n0")


def test_an_agent_writes_its_workspace_and_its_home(bridge: Observed) -> None:
    write = 'run echo mine > here.txt && echo mine > "$HOME/there.txt" && cat here.txt ~/there.txt'

    seen = bridge.ask("writing", write, "demo")

    assert seen["text"].endswith("ended with status 0.\n\n```\nmine\nmine\n```")
    home = f"{bridge.session('writing', 'demo')}-demo"
    assert (bridge.data_dir / "session-homes" / home / "there.txt").read_text() == "mine\n"


@needs_bubblewrap
def test_an_isolated_agent_writes_nowhere_else(bridge: Observed) -> None:
    targets = [
        ROOT / "canary",
        Path("/etc/canary"),
        bridge.data_dir / "canary",
        bridge.data_dir / "homes" / "second" / "canary",
        bridge.folder / "person" / "canary",
    ]

    for target in targets:
        bridge.ask("scribbling", f"run touch {target}", "demo")

    assert [target for target in targets if target.exists()] == []


@needs_bubblewrap
def test_nothing_an_isolated_agent_started_outlives_it(bridge: Observed) -> None:
    number = bridge.begin("family", "children 4\ntell here\nhold over", "demo")
    bridge.held("family", "here", "demo")
    family = bridge.agent_pids("demo")
    bridge.release("family", "over", "demo")
    seen = bridge.end("family", number, "demo")

    bridge.told("family", "new")

    assert seen["text"].startswith("Children: ")
    assert len(family) >= 5
    assert bridge.ask("family", "recall", "demo")["text"] == "You told me nothing yet."
    (alive,) = bridge.rows(
        'select "group" from process where session = ?', bridge.session("family", "demo")
    )
    bridge.wait(lambda: not sleepers(bridge), "a grandchild lives", PATIENCE)
    assert alive[0] in bridge.agent_pids("demo")


def sleepers(bridge: Observed) -> set[int]:
    """Find what `children` started."""
    return {
        pid
        for pid in bridge.agent_pids("demo")
        if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep\0")
    }


def words(bridge: Observed, agent: str) -> str:
    """Read in the API how an agent is kept apart."""
    return str(bridge.http.get(f"/api/v1/agents/{agent}").json()["isolation"])


@pytest.mark.long
def test_the_api_says_in_words_what_an_agent_without_isolation_can_read(bridge: Observed) -> None:
    said = words(bridge, "open")

    assert said.startswith("not isolated: it runs as ")
    assert "can read" in said
    assert said.endswith('To isolate it, remove "sandbox": "none" from its entry in AGENTS_JSON.')


@pytest.mark.slow
@needs_bubblewrap
def test_the_api_says_of_an_isolated_agent_that_it_is(bridge: Observed) -> None:
    tried = f"demo: {ISOLATED}"
    bridge.wait(lambda: tried in bridge.log.read_text(), "no probe", PATIENCE)

    assert words(bridge, "demo") == ISOLATED
