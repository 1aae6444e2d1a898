"""Attacks on the promise that known secrets in their usual forms do not leave."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from app.model.wording import EXPOSED
from app.vault.forms import fold, visible
from tests.support.bridge import ADMIN_TOKEN, ROOT
from tests.support.observe import PATIENCE, Observed
from tests.support.platform import Platform
from tests.support.postgres import read_store
from tests.support.secret_forms import FORMS

KEY = "sk-7Qd2mXw9RtLk4BzVn8YpHc3F"
UNNAMED = {
    "DATABASE_URL": "postgresql://app:b4tt3ry-st4ple-9x@db.example/app",
    "GH_PAT": "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "SENTRY_DSN": "https://5f3c1b2a9d8e4f70aa@o1.example/42",
    "PASSPHRASE": "correct horse battery staple",
}
"""Secrets in variables whose names do not say so."""
LEAKY = {
    "command": [sys.executable, str(ROOT / "tests" / "support" / "leaky_agent.py")],
    "sandbox": "none",
    "env": {
        "LEAKY_API_KEY": KEY,
        "AGENT_BRIDGE_DEMO_FAULTS": "1",
        "NODE_ENV": "production-eu-1",
        "ANTHROPIC_MODEL": "claude-sonnet-4-5-20250929",
        **UNNAMED,
    },
}


@dataclass
class Witness(Platform):
    """A platform that remembers every call."""

    calls: list[str] = field(default_factory=list)

    def take(self, call: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.calls.append(json.dumps(call, ensure_ascii=False))
        return super().take(call)


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    with (
        Witness() as platform,
        Observed(
            tmp_path_factory.mktemp("attacks"), platform, agents={"demo": LEAKY}, wrapper=[]
        ) as bridge,
    ):
        yield bridge


def everything(bridge: Observed, *paths: str) -> dict[str, str]:
    """Read all that left the bridge: log, database, calls to the platform, pages."""
    assert isinstance(bridge.platform, Witness)
    stored = {"log": bridge.log.read_bytes(), **read_store(bridge.data_dir)}
    kept = {name: content.decode(errors="replace") for name, content in stored.items()}
    kept["platform"] = "\n".join(bridge.platform.calls)
    return kept | {path: bridge.http.get(path).text for path in ("/", "/metrics", *paths)}


def thread(bridge: Observed, place: str) -> tuple[str, str]:
    """Name the page of a place and what the API tells of its session."""
    session = bridge.session(place)
    return f"/t/web/{place}", f"/api/v1/sessions/{session}/transcript"


def assert_key_is_nowhere(kept: dict[str, str]) -> None:
    """Look for the key as a person would, and as a program that drops marks."""
    secret = fold(KEY)
    for where, text in kept.items():
        assert KEY not in text, where
        assert secret not in fold(text), where
        assert secret not in fold(visible(text) or text), where


@pytest.mark.long
def test_a_secret_said_in_any_usual_form_does_not_come_out(bridge: Observed) -> None:
    """Attack 16."""
    seen = bridge.ask("forms", "leak forms")
    told = dict(re.findall(r"^([^:\n]+): (.*?) :end\.$", seen["text"], re.DOTALL | re.MULTILINE))
    kept = everything(bridge, *thread(bridge, "forms"))

    assert told.keys() == FORMS.keys()
    assert {name: text for name, text in told.items() if "[secret]" not in text} == {}
    for name, form in FORMS.items():
        leaked = [where for where, text in kept.items() if form(KEY) in text]
        assert leaked == [], name
    assert_key_is_nowhere(kept)


def test_the_page_does_not_put_a_masked_secret_together_again(bridge: Observed) -> None:
    """Attack 17."""
    bridge.ask("marked", "leak marked")

    assert_key_is_nowhere(everything(bridge, *thread(bridge, "marked")))


def test_a_secret_said_by_a_person_reaches_the_agent_and_nothing_else(bridge: Observed) -> None:
    """Attack 18."""
    seen = bridge.ask("pasted", f"same {KEY}")

    assert seen["text"] == "the same"
    assert_key_is_nowhere(everything(bridge, *thread(bridge, "pasted")))
    assert bridge.notice("pasted", 1) == EXPOSED
    said = "select text from transcript where kind = 'message' and text like 'same%'"
    assert bridge.rows(said)[0] == ("same [secret]",)


def test_a_secret_in_a_variable_of_any_name_does_not_come_out(bridge: Observed) -> None:
    told = bridge.ask("variables", "env")["text"]

    for secret in ("b4tt3ry-st4ple-9x", UNNAMED["GH_PAT"], "5f3c1b2a9d8e4f70aa", "horse battery"):
        kept = everything(bridge, *thread(bridge, "variables"))
        assert [where for where, text in kept.items() if secret in text] == [], secret
    assert "production-eu-1" in told
    assert "claude-sonnet-4-5-20250929" in told


@pytest.mark.slow
def test_a_secret_said_by_a_person_reaches_the_agent_after_kill_9(bridge: Observed) -> None:
    """Attack 18: what is hidden from the database is still there for the agent."""
    number = bridge.begin("killed", f"tell here\nhold go\nsame {KEY}")
    bridge.held("killed", "here")
    sealed = bridge.rows("select count(*) from sealed")

    bridge.kill()
    assert_key_is_nowhere({"db": (bridge.data_dir / "bridge.db").read_text(errors="replace")})
    bridge.start()
    bridge.release("killed", "go")

    assert bridge.end("killed", number)["text"].endswith("the same")
    assert_key_is_nowhere(everything(bridge))
    assert (sealed, bridge.rows("select count(*) from sealed")) == ([(1,)], [(0,)])


@pytest.mark.slow
def test_a_secret_in_the_first_words_of_a_thread_is_in_no_title(tmp_path: Path) -> None:
    """Attack 18: the page names a thread after what was said first."""
    with (
        Witness() as platform,
        Observed(tmp_path, platform, agents={"demo": LEAKY}, hooks=False, wrapper=[]) as bridge,
    ):
        new = {"agent": "demo", "text": f"same {KEY}", "thread": "named"}
        assert bridge.http.post("/api/v1/sessions", json=new).status_code == 201
        ended = "select state from turn where state = 'done'"
        bridge.wait(lambda: bridge.rows(ended) == [("done",)], "no end", PATIENCE)

        kept = everything(bridge, *thread(bridge, "named"), "/api/v1/sessions")

        assert "the same" in kept["/t/web/named"]
        assert EXPOSED[:40] in kept["/t/web/named"]
        assert bridge.rows("select title from place") == [("same [secret]",)]
        assert_key_is_nowhere(kept)


def test_the_value_of_a_log_in_cookie_does_not_come_out(bridge: Observed) -> None:
    link = bridge.http.post("/api/v1/login-links").json()["url"]
    there = urlsplit(link)
    headers = {"Host": there.netloc, "Origin": f"http://{there.netloc}"}
    answer = bridge.http.post(there.path, headers=headers)
    (cookie,) = dict(answer.cookies).values()
    stolen = bridge.folder / "stolen"
    stolen.write_text(f"{cookie} {link}")

    seen = bridge.ask("cookie", f"read {stolen}")

    assert cookie not in seen["text"]
    assert "[secret]" in seen["text"]


@pytest.mark.long
@pytest.mark.parametrize(
    "path", ["/openapi.json", "/readyz", "/metrics", "/api/v1/agents", "/api/v1/nowhere", "/t/x/y"]
)
def test_no_answer_over_http_holds_a_secret(bridge: Observed, path: str) -> None:
    answer = bridge.http.get(path)

    assert_key_is_nowhere({path: answer.text})
    assert ADMIN_TOKEN not in answer.text
