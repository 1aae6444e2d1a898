"""Services plug in: one that another package brings works, and none needs another one."""

from __future__ import annotations

import hmac
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from app.services import BUILT_IN
from tests.support import echo
from tests.support.bridge import ROOT, demo
from tests.support.echo import SECRET, Receiver, message, signed
from tests.support.served import SECONDS, Served

pytestmark = pytest.mark.one_database

NOWHERE = "http://127.0.0.1:1"
SERVE = (sys.executable, "-m", "app", "serve")
AGENTS = {"AGENTS_JSON": json.dumps({"demo": demo()})}


@contextmanager
def served_with_echo(folder: Path, receiver: Receiver) -> Iterator[Served]:
    """Serve a bridge in whose environment the example is installed."""
    settings = {
        **AGENTS,
        "PYTHONPATH": f"{echo.installed()}",
        "ECHO_WEBHOOK_SECRET": SECRET,
        "ECHO_CALLBACK_URL": receiver.url,
    }
    with Served(folder, surroundings=settings) as bridge:
        yield bridge


@pytest.mark.long
def test_a_service_of_another_package_hears_answers_and_asks(tmp_path: Path) -> None:
    with echo.loaded() as service:
        headers_for = import_module(f"{service.build.__module__}.signing").headers_for
    with Receiver() as receiver, served_with_echo(tmp_path, receiver) as bridge:
        hook = f"http://127.0.0.1:{bridge.port}/webhooks/echo"

        def deliver(event: dict[str, object], *, late: float = 0, **forged: str) -> int:
            request = signed(headers_for, event, time.time() - late)
            request["headers"] |= {f"x-echo-{name}": value for name, value in forged.items()}
            return httpx.post(hook, **request, trust_env=False).status_code

        assert deliver(message("t1", "say no"), signature="0" * 64) == 401
        assert deliver(message("t1", "say no"), delivery="another") == 401
        assert deliver(message("t1", "say no"), late=1000) == 401
        assert deliver(message("t1", "say hello there")) == 200
        answer = receiver.wait(lambda post: post["state"] == "done")
        assert (answer["place"], answer["agent"], answer["text"]) == ("t1", "demo", "hello there")

        assert deliver(message("t2", "ask Which way? | Left | Right")) == 200
        asked = receiver.wait(lambda post: post["kind"] == "ask" and post["state"] == "open")
        assert [option["name"] for option in asked["options"]][:2] == ["Left", "Right"]
        option = asked["options"][0]["id"]
        given = {"type": "answer", "ask": asked["ask"], "option": option, "speaker": echo.ANN}
        assert deliver(given) == 200
        receiver.wait(lambda post: post["id"] == asked["id"] and post["state"] != "open")
        receiver.wait(lambda post: post["place"] == "t2" and post["state"] == "done")

        checked = run(bridge, "doctor").stdout
        assert "echo:demo: its callback takes posts" in checked
        assert "plug-in: echo from " in checked
        assert (
            f"{bridge.port}/webhooks/echo, with" in run(bridge, "manifest", "echo", "demo").stdout
        )

    assert {"type": "ping", "agent": "demo"} in receiver.others
    last = receiver.headers[-1]
    body = f"{last['x-echo-timestamp']}.{last['x-echo-delivery']}.".encode() + receiver.bodies[-1]
    expected = hmac.new(SECRET.encode(), body, "sha256").hexdigest()
    assert last["x-echo-signature"] == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILT_IN)
def test_a_bridge_without_the_folder_of_one_service_runs_the_others(
    name: str, tmp_path: Path
) -> None:
    here = tmp_path / "installed"
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "app", here / "app", ignore=unwanted)
    shutil.copytree(ROOT / "alembic", here / "alembic", ignore=unwanted)
    shutil.rmtree(here / "app" / "services" / name)
    left = [other for other in BUILT_IN if other != name]
    settings = {key: value for other in left for key, value in credentials(other).items()}
    settings |= {**AGENTS, "PYTHONPATH": f"{here}"}

    with Served(tmp_path / "bridge", SERVE, here, settings) as bridge:
        said = bridge.output.read_text()
        manifest = run(bridge, "manifest", name, "demo")

    assert "there is no service" in manifest.stderr
    assert f"{', '.join(sorted([*left, 'web']))}" in said


def test_a_package_that_names_no_service_is_told_of(tmp_path: Path) -> None:
    about = tmp_path / "broken-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[agent_bridge.services]\nbroken = broken:SERVICE\n")

    bridge = Served(tmp_path / "bridge", surroundings={"PYTHONPATH": str(tmp_path)})
    listed = run(bridge, "agents", "list")
    bridge.close()

    assert listed.returncode == 1
    assert "the package broken: it cannot be imported" in listed.stderr


def run(bridge: Served, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command where a bridge runs."""
    return subprocess.run(
        [sys.executable, "-m", "app", *words],
        cwd=bridge.cwd or bridge.home,
        env=bridge.environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def credentials(service: str) -> dict[str, str]:
    """Let an agent be on a service that is down."""
    match service:
        case "slack":
            return {
                "SLACK_API_URL": f"{NOWHERE}/api/",
                "SLACK_BOT_TOKEN": "xoxb-1",
                "SLACK_APP_TOKEN": "xapp-1",
            }
        case "github":
            key = rsa.generate_private_key(65537, 2048)
            pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            return {
                "GITHUB_API_URL": NOWHERE,
                "GITHUB_APP_ID": "1",
                "GITHUB_PRIVATE_KEY": pem.decode(),
                "GITHUB_WEBHOOK_SECRET": "h7-github-Kq2-tests",
            }
        case _:
            return {
                "LINEAR_API_URL": f"{NOWHERE}/graphql",
                "LINEAR_ACCESS_TOKEN": "lin_1",
                "LINEAR_WEBHOOK_SECRET": "h7-linear-Kq2-tests",
            }
