"""What goes over the wire is what GitHub publishes: its events, and the bodies that it takes."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import NoneType
from typing import Any

import pytest
from graphql import build_schema, validate
from graphql import parse as parse_document
from jsonschema import Draft202012Validator

from app.errors import DeliveryRefused
from app.model.inbound import Answered, Delivery, Heard, News
from app.model.posts import PostContent, PostSend
from app.model.types import ActivePlace, Speaker
from app.model.updates import AskOption
from app.services.github import api
from app.services.github.events import name_repository, parse
from app.services.github.names import GitHubIdentity, Identities, Spot
from app.services.github.wording import OTHER_ACCOUNT
from sim.github.rest import GRAPHQL
from sim.github.state import Check
from tests.support.github_desk import Desk, Office, read
from tests.support.github_openapi import GOLDEN, golden, operation, shapes

US = Identities.of([GitHubIdentity("claude", "claude-bridge[bot]", 11)])
PACKAGES = (
    "@octokit/webhooks-examples@7.6.1",
    "@octokit/openapi@23.0.2",
    "@octokit/graphql-schema@15.26.1",
)
INSTALL_SECONDS = 300


def examples() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / "events.json").read_text())
    return found


@pytest.mark.parametrize("name", examples())
def test_an_event_as_github_sends_it_is_understood_if_it_speaks_to_an_agent(name: str) -> None:
    event, _, _ = name.partition(".")
    payload = examples()[name]
    for part in ("comment", "review", "issue", "pull_request"):
        if part in payload:
            payload[part]["body"] = "@claude-bridge look"
            payload["sender"] = payload[part]["user"]
            break
    payload["label"] = {"name": "agent:claude"}

    heard = read(event, json.dumps(payload).encode(), US)

    assert isinstance(heard, Heard)
    assert heard.mentions == ("claude",)
    assert heard.external.startswith("Codertocat/Hello-World:")


async def every_call(desk: Desk) -> None:
    """Do all that an agent does on GitHub."""
    await desk.claude._sweep.introduce()
    issue = desk.github.open_issue("ann", desk.repository, "Bug", "@claude-bridge look")
    said = desk.github.comment("ann", issue, "@claude-bridge look")
    desk.github.git.commit("acme/widgets", "topic", {"a.py": "one\ntwo\n"}, "Change")
    office = Office(desk)
    await office.propose("A", "topic")
    await office.propose("B", "topic")
    pull = desk.repository.issues[2]
    review = desk.github.review("ann", pull, None, ("a.py", 1, "why?"))
    await office.forge.token(office.repository, "claude")
    await office.head(pull)
    await office.forge.guard(office.repository, "claude", "topic")
    for place, name in (
        (issue, f"comment-{said.id}"),
        (issue, "issue-1"),
        (pull, f"review-{review.id}"),
    ):
        content = PostContent(kind="turn", state="starting", message_id=name)
        begun = await desk.claude.send(PostSend("create", desk.key(place), "ab-0", content))
        progress = PostSend("replace", desk.key(place), "ab-1", content, begun.remote_id)
        sent = await desk.claude.send(progress)
        done = replace(content, state="done", text="Done.")
        await desk.claude.send(PostSend("finish", desk.key(place), "ab-1", done, sent.remote_id))
    options = (AskOption("yes", "Allow once", "allow_once"),)
    asked = PostContent(kind="ask", state="open", text="May I?", ask=7, options=options)
    starting = PostContent(kind="turn", state="starting")
    begun = await desk.claude.send(PostSend("create", desk.key(pull), "ab-3", starting))
    await desk.claude.send(PostSend("create", desk.key(pull), "ab-4", asked))
    done = PostContent(kind="turn", state="done", text="Done.")
    await desk.claude.send(PostSend("finish", desk.key(pull), "ab-3", done, begun.remote_id))
    words = "```review\na.py:1-2: Why?\n```"
    done = PostContent(kind="turn", state="done", text=words)
    await desk.claude.send(PostSend("create", desk.key(pull), "ab-2", done))
    await desk.claude.earlier(desk.key(pull), "")
    told = {"title": "x", "summary": "y", "annotations": [{"path": "a.py", "message": "z"}]}
    desk.github.check(pull, Check(None, "build", "", 0.0, "completed", "failure", told))
    assert pull.pull is not None
    here = Spot("acme/widgets", pull.number).place
    await desk.claude.checked(News("checked", here, "acme/widgets", "topic", pull.pull.sha))
    await desk.claude.refusal(Speaker("ann", "ann"), Spot("acme/widgets", 1).place)
    await desk.heard()
    desk.github.hooks.held = None
    desk.github.comment("ann", issue, "@claude-bridge again")
    desk.github.quiet()

    desk.in_use.append(ActivePlace(desk.key(issue), "", "", desk.clock.now()))
    for source in await desk.claude.sources():
        assert [each async for each in source.find(0.0)]


async def test_every_call_is_one_that_github_publishes_with_a_body_it_takes(
    desk: Desk,
) -> None:
    await every_call(desk)

    known = golden()
    calls = [call for call in desk.github.calls if call.path != GRAPHQL]
    made = {operation(call.method, call.path, known) for call in calls}
    wrong = [
        f"{call.method} {call.path}: {error.message}"
        for call in calls
        if (name := operation(call.method, call.path, known)) and known[name]
        for error in Draft202012Validator(known[name]).iter_errors(call.data)
    ]

    assert wrong == []
    assert made == set(known) - {"POST /app-manifests/{code}/conversions"}


@pytest.fixture(scope="module")
def octokit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install what GitHub publishes, in the versions that were looked at."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("octokit")
    quiet = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run(
        [npm, "install", *quiet, "--prefix", folder, *PACKAGES],
        capture_output=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if done.returncode:
        pytest.skip("npm could not install @octokit's packages")
    return folder / "node_modules" / "@octokit"


def refusal(desk: Desk, event: str, body: bytes) -> str:
    """Let an adapter read an event; returns why it refuses it."""
    delivery = Delivery("github:claude", "0", None, {"event": event}, body, 0.0)
    desk.claude.naming(delivery)
    try:
        desk.claude.parse(delivery)
    except DeliveryRefused as error:
        return error.reason
    return ""


@pytest.mark.slow
async def test_every_example_that_github_publishes_is_read_or_refused_in_words(
    octokit: Path, desk: Desk
) -> None:
    published = json.loads((octokit / "webhooks-examples/api.github.com/index.json").read_text())
    sent = [
        (event["name"], json.dumps(payload).encode())
        for event in published
        for payload in event["examples"]
    ]

    kinds = {type(read(*each, US)) for each in sent}
    named = [name_repository(parse(*each), "github.com") for each in sent]
    refused = {why for each in sent if (why := refusal(desk, *each))}

    assert len(sent) > 300
    assert kinds >= {Heard, News, NoneType}
    assert Answered not in kinds, "the buttons are of other Apps"
    assert any(named)
    assert refused == {OTHER_ACCOUNT}, "the examples come from other accounts"


@pytest.mark.slow
def test_every_document_fits_the_schema_that_github_publishes(octokit: Path) -> None:
    published = (octokit / "graphql-schema/schema.graphql").read_text()
    # A strict reader refuses some of it, such as fields that are defined twice.
    schema = build_schema(published, assume_valid=True, assume_valid_sdl=True)

    documents = map(parse_document, (api.MINIMIZE, api.THREADS, api.RESOLVE))

    assert [error.message for each in documents for error in validate(schema, each)] == []


@pytest.mark.slow
def test_the_bodies_that_are_kept_here_are_those_that_github_publishes(octokit: Path) -> None:
    spec = json.loads((octokit / "openapi/generated/api.github.com.json").read_text())

    assert shapes(spec, list(golden())) == golden()
