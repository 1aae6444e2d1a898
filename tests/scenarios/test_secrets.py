"""No secret the bridge knows leaves it, wherever an agent says it: not in posts, store or log."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.bridge import ADMIN_TOKEN, ROOT
from tests.support.observe import PATIENCE, Observed
from tests.support.platform import Platform
from tests.support.postgres import read_store
from tests.support.variants import quick

pytestmark = pytest.mark.one_database

KEY = "sk-7Qd2mXw9RtLk4BzVn8YpHc3F"
FORMS = (
    KEY,
    KEY[:16],
    KEY[-16:],
    base64.b64encode(KEY.encode()).decode()[:20],
    KEY.encode().hex()[:20],
    ADMIN_TOKEN,
)
LEAKY = [sys.executable, str(ROOT / "tests" / "support" / "leaky_agent.py")]


@dataclass
class Witness(Platform):
    """A platform that remembers every call, progress too."""

    calls: list[str] = field(default_factory=list)

    def take(self, call: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.calls.append(json.dumps(call))
        return super().take(call)


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    folder = tmp_path_factory.mktemp("secrets")
    leaky = {
        "command": LEAKY,
        "sandbox": "none",
        "env": {"LEAKY_API_KEY": KEY, "AGENT_BRIDGE_DEMO_FAULTS": "1"},
    }
    settings = {"LOG_LEVEL": "debug", "BRIDGE_SECRET_KEY": ""}
    with (
        Witness() as platform,
        Observed(folder, platform, agents={"demo": leaky}, settings=settings, wrapper=[]) as bridge,
    ):
        yield bridge


def made_by(bridge: Observed) -> str:
    """Tell the secret key that the bridge made for itself."""
    lines = (bridge.data_dir / "secrets").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)["BRIDGE_SECRET_KEY"]


def assert_nothing_leaked(bridge: Observed) -> None:
    """Look at everything that left the bridge, as bytes."""
    platform = bridge.platform
    assert isinstance(platform, Witness)
    kept = {"log": bridge.log.read_bytes(), **read_store(bridge.data_dir)}
    kept["posts"] = "\n".join(platform.calls).encode()
    forms = [form.encode() for form in (*FORMS, made_by(bridge))]
    found = [(where, form) for where in kept for form in forms if form in kept[where]]
    assert len(kept) >= 3
    assert found == []


WAYS = ["text", "slowly", "encoded", "thought", "plan", "tool", "title", "state"]


@pytest.mark.parametrize("way", quick(4, WAYS))
def test_a_secret_that_an_agent_says_goes_nowhere(bridge: Observed, way: str) -> None:
    seen = bridge.ask(f"way-{way}", f"leak {way}\nsay the end")

    assert seen["state"] == "done"
    assert seen["text"].endswith("the end")
    assert_nothing_leaked(bridge)


def test_what_stands_around_a_secret_is_still_said(bridge: Observed) -> None:
    assert bridge.ask("around", "leak text")["text"] == "The key is [secret], indeed."
    slowly = bridge.ask("around", "leak slowly")
    assert slowly["text"] == "Letter by letter: [secret] and on."
    plan = bridge.ask("around", "leak plan")["plan"]
    assert [step["text"] for step in plan] == ["Use [secret]"]


def test_a_secret_in_an_ask_goes_nowhere_and_the_ask_can_be_answered(bridge: Observed) -> None:
    number = bridge.begin("asking", "leak ask\nsay the end")
    (ask,) = bridge.open_asks(1, "asking")

    bridge.answer(ask, "yes")

    assert bridge.end("asking", number)["text"] == "the end"
    shown = [p.content for p in bridge.platform.posts if p.content["kind"] == "ask"]
    assert shown[-1]["text"] == "May I use [secret]?"
    assert_nothing_leaked(bridge)


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("error", "demo failed: Wrong key [secret]: it was [secret]"),
        (
            "stderr",
            "demo crashed. Its last words: Traceback: KeyError [secret]",
        ),
    ],
)
def test_a_secret_in_the_words_of_a_failure_goes_nowhere(
    bridge: Observed, way: str, expected: str
) -> None:
    seen = bridge.ask(f"failing-{way}", f"leak {way}")

    assert (seen["state"], seen["note"]) == ("failed", expected)
    assert_nothing_leaked(bridge)


def test_a_secret_in_a_title_between_turns_goes_nowhere(bridge: Observed) -> None:
    bridge.ask("later", "leak afterwards")
    title = "select title from session where id = ?"
    session = bridge.session("later")

    bridge.wait(lambda: "About" in bridge.rows(title, session)[0][0], "no title", PATIENCE)

    assert bridge.rows(title, session) == [("About [secret]",)]
    assert_nothing_leaked(bridge)


def test_a_secret_in_the_refusal_of_a_mode_goes_nowhere(bridge: Observed) -> None:
    bridge.ask("mode", "say here")

    assert "No mode for [secret]" in bridge.told("mode", "mode leaky")
    assert_nothing_leaked(bridge)


def test_a_secret_in_the_output_of_a_command_goes_nowhere(bridge: Observed) -> None:
    number = bridge.begin("running", "run echo $LEAKY_API_KEY; env\nenv")
    (ask,) = bridge.open_asks(1, "running")
    bridge.answer(ask)

    assert "[secret]" in bridge.end("running", number)["text"]
    assert_nothing_leaked(bridge)


@pytest.mark.long
def test_the_bridges_own_secrets_read_by_an_agent_go_nowhere(bridge: Observed) -> None:
    stolen = bridge.folder / "stolen"
    stolen.write_text(f"{ADMIN_TOKEN} {made_by(bridge)}")

    assert bridge.ask("stealing", f"read {stolen}")["text"] == "[secret] [secret]"
    assert_nothing_leaked(bridge)
