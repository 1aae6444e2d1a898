"""Features plug in: one that another package brings works, and none is needed by the rest."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from app.features import BUILT_IN
from tests.support.bridge import ROOT, demo
from tests.support.echo import install
from tests.support.served import LOOK_SECONDS, SECONDS, Served

pytestmark = pytest.mark.one_database

EXAMPLE = ROOT / "examples" / "dice_feature"
TOKEN = "Uv3-features-qX9-of-these-tests"
AGENTS = {"AGENTS_JSON": json.dumps({"demo": demo()}), "BRIDGE_ADMIN_TOKEN": TOKEN}
PATHS = {
    "pause": "/api/v1/pauses",
    "schedules": "/api/v1/schedules",
    "erasing": "/api/v1/people",
    "conversations": "/api/v1/conversations",
    "spending": "/api/v1/spending",
    "record": "/api/v1/record",
    "memory": "/api/v1/agents/demo/memory",
}
"""What each feature serves, if it serves something."""


def connect(bridge: Served) -> httpx.Client:
    """Call the API of a bridge."""
    return httpx.Client(
        base_url=f"http://127.0.0.1:{bridge.port}",
        headers={"Authorization": f"Bearer {TOKEN}"},
        timeout=SECONDS,
        trust_env=False,
    )


def converse(http: httpx.Client, text: str) -> list[str]:
    """Begin a thread, say something in it, and return what it shows once that is answered."""
    new = {"agent": "demo", "text": "say hello", "thread": "t1"}
    session = http.post("/api/v1/sessions", json=new).raise_for_status().json()["id"]
    # In a turn of its own, also if the first one still runs.
    words = {"text": text, "while_busy": "queue"}
    http.post(f"/api/v1/sessions/{session}/messages", json=words).raise_for_status()
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        found = http.get(f"/api/v1/sessions/{session}").raise_for_status().json()
        if all(turn["state"] == "done" for turn in found["turns"]):
            break
        time.sleep(LOOK_SECONDS)
    items = http.get(f"/api/v1/sessions/{session}/transcript").raise_for_status().json()["items"]
    return [each["text"] for each in items if each["kind"] in {"text", "notice"}]


@pytest.mark.long
def test_a_feature_of_another_package_obeys_in_chats_and_serves_its_path(tmp_path: Path) -> None:
    folder = install(EXAMPLE)
    settings = {**AGENTS, "PYTHONPATH": str(folder)}
    with Served(tmp_path, surroundings=settings) as bridge, connect(bridge) as http:
        rolled = http.get("/api/v1/dice/2d6")
        nothing = http.get("/api/v1/dice/none")
        said = converse(http, "roll 1d1")
        posted = http.get("/api/v1/posts").json()["items"]

    assert (rolled.status_code, nothing.status_code) == (200, 404)
    assert 2 <= rolled.json()["total"] <= 12
    assert said == ["hello"]
    assert "operator rolls 1." in [each["note"] for each in posted]


@pytest.mark.long
@pytest.mark.parametrize("name", BUILT_IN)
def test_a_bridge_without_a_feature_starts_and_answers(tmp_path: Path, name: str) -> None:
    copy = tmp_path / "copy"
    left_out = shutil.ignore_patterns("__pycache__")
    for folder in ("app", "alembic"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=left_out)
    shutil.copy(ROOT / "pyproject.toml", copy)
    shutil.rmtree(copy / "app" / "features" / name)
    command = (sys.executable, "-m", "app", "serve")
    served = Served(tmp_path / "data", command, cwd=copy, surroundings=AGENTS)
    with served as bridge, connect(bridge) as http:
        said = converse(http, "say still here")
        gone = http.get(PATHS.get(name, "/api/v1/none")).status_code

    assert (said, gone) == (["hello", "still here"], 404)


def test_every_reference_of_a_feature_leads_somewhere() -> None:
    code = "from app.features import registered_features as all; [each.routers() for each in all()]"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")


def test_the_docs_name_every_moment() -> None:
    page = (ROOT / "docs" / "adding-a-feature.md").read_text()
    named = set(re.findall(r"`([a-z_]+)`", page))
    defined = {
        name
        for path in ("app/core/hooks.py", "app/features/part.py")
        for name in _members((ROOT / path).read_text())
    }

    assert defined - named == set()


def _members(source: str) -> set[str]:
    """Return what a class for features may override: methods and values of Hook and Part."""
    start = re.search(r"^class (?:Hook|Part)\b", source, re.MULTILINE)
    assert start is not None
    rest = source[start.start() :]
    end = re.search(r"^(?:@dataclass|def )", rest[1:], re.MULTILINE)
    body = rest[: end.start()] if end else rest
    found = re.findall(r"^    (?:async )?(?:def )?([a-z]\w*)(?=\(self|[: ])", body, re.MULTILINE)
    return {name for name in found if name not in {"async", "def"}}
