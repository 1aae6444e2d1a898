"""Two fronts and a worker on one PostgreSQL: people need not know which one they talk to."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.bridge import SPEED, BridgeProcess, demo
from tests.support.platform import Platform
from tests.support.postgres import need_server, server

pytestmark = pytest.mark.timeout(180)
"""Three bridges have to start, some on a server that has to start first."""

LEASE_SECONDS = str(10 * SPEED)
"""Ten seconds for their clocks, which run faster."""


class Company:
    """A front at the desk, another front, and a worker."""

    def __init__(self, folder: Path, platform: Platform, *, page: bool) -> None:
        self.platform = platform
        self.page = page
        self.folder = folder
        self.desk, self.front, self.worker = (
            self._member(name, role)
            for name, role in (("desk", "front"), ("front", "front"), ("worker", "worker"))
        )

    def _member(self, name: str, role: str) -> BridgeProcess:
        (self.folder / name).mkdir()
        address = server().provide(self.folder)
        settings = {"DATABASE_URL": address, "ROLE": role, "LEASE_SECONDS": LEASE_SECONDS}
        return BridgeProcess(
            self.folder / name, self.platform, settings=settings, page=self.page, speed=SPEED
        )

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Read the store."""
        return server().run(self.folder, query, *parameters)

    def begin(self, text: str, agent: str = "demo") -> dict[str, Any]:
        """Let the front begin a conversation on the page."""
        answer = self.front.http.post("/api/v1/sessions", json={"agent": agent, "text": text})
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def wait_state(self, at: BridgeProcess, session: int, state: str, number: int = -1) -> None:
        """Wait until a member says that a turn is in a state."""

        def reached() -> bool:
            turns = at.http.get(f"/api/v1/sessions/{session}").json()["turns"]
            return bool(turns[number]["state"] == state)

        at.wait(reached, f"session {session} is never {state}")

    def texts(self, at: BridgeProcess, session: int) -> list[str]:
        """List what agents wrote in a session, as a member shows it."""
        items = at.http.get(f"/api/v1/sessions/{session}/transcript").json()["items"]
        return [each["text"] for each in items if each["kind"] == "text"]


@contextmanager
def open_company(folder: Path, *, page: bool) -> Iterator[Company]:
    """Start the three; the first one gets the desk."""
    need_server()
    with ExitStack() as stack:
        platform = stack.enter_context(Platform())
        made = Company(folder, platform, page=page)
        stack.enter_context(made.desk)
        made.desk.wait(lambda: bool(made.rows("select member from duty")), "no one has the desk")
        stack.enter_context(made.front)
        stack.enter_context(made.worker)
        yield made


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with open_company(tmp_path_factory.mktemp("company"), page=True) as made:
        yield made


@pytest.mark.long
def test_a_webhook_at_one_front_is_answered_by_the_other_one_and_run_by_the_worker(
    tmp_path: Path,
) -> None:
    with open_company(tmp_path, page=False) as company:
        assert company.front.say("t1", "slow 2\nsay hello there") == 200
        company.platform.wait(lambda _: any(p.edits > 1 for p in company.platform.turns("t1")))
        company.platform.wait(lambda _: company.platform.turns("t1")[0].state == "done")

        (post,) = company.platform.posts
        assert post.text.endswith("hello there")
        assert (post.finished, post.reopened) == (1, 0)
        worker = (company.worker.data_dir / "member").read_text()
        assert company.rows("select served_by from session") == [(worker,)]


def test_a_page_of_any_front_shows_and_answers_what_the_worker_does(company: Company) -> None:
    session = company.begin("write made.txt some words\nslow 3")["id"]

    def list_asks() -> list[dict[str, Any]]:
        found = company.front.http.get("/api/v1/asks?state=open").json()["items"]
        return [each for each in found if each["session"] == session]

    company.front.wait(lambda: bool(list_asks()), "nothing is asked")
    (ask,) = list_asks()
    seen = []
    url = f"/api/v1/sessions/{session}/events"
    with company.front.http.stream("GET", url) as events:
        answer = company.front.http.post(
            f"/api/v1/asks/{ask['id']}/answer", json={"option": ask["options"][0]["id"]}
        )
        assert answer.status_code == 200
        for line in events.iter_lines():
            if line.startswith("event: "):
                seen.append(line.removeprefix("event: "))
            if seen.count("unfinished") >= 2:
                break
    company.wait_state(company.front, session, "done")
    company.wait_state(company.desk, session, "done")
    assert company.texts(company.front, session) == company.texts(company.desk, session) != []
    made = company.worker.workspace(session=session) / "made.txt"
    assert made.read_text() == "some words\n"

    listed = company.front.http.get(f"/workspace/{session}")
    assert (listed.status_code, "made.txt" in listed.text) == (200, True)
    noise = secrets.token_bytes(300_000)
    made.with_name("noise").write_bytes(noise)
    raw = company.front.http.get(f"/workspace/{session}/raw/noise")
    assert raw.content == noise
    assert raw.headers["content-disposition"].startswith("attachment")
    made.with_name("noise").write_bytes(bytes(5_000_000))
    assert company.front.http.get(f"/workspace/{session}/raw/noise").status_code == 409
    assert company.front.http.get(f"/workspace/{session}/raw/none").status_code == 404
    unknown = httpx.get(f"{company.front.http.base_url}/workspace/{session}", trust_env=False)
    assert unknown.status_code in {303, 401}


@pytest.mark.long
def test_a_stop_at_any_front_stops_the_worker(company: Company) -> None:
    session = company.begin("hang")["id"]
    company.wait_state(company.desk, session, "prompted")

    assert company.front.http.post(f"/api/v1/sessions/{session}/cancel").is_success
    company.wait_state(company.desk, session, "cancelled")
    again = company.front.http.post(
        f"/api/v1/sessions/{session}/messages", json={"text": "say again"}
    )
    assert again.status_code == 202
    company.wait_state(company.front, session, "done")


@pytest.mark.long
def test_an_agent_that_one_front_adds_works_everywhere(company: Company) -> None:
    entry = {"name": "helper", **demo()}
    made = company.front.http.post("/api/v1/agents", json=entry)
    assert made.status_code == 201, made.text

    def knows(member: BridgeProcess) -> bool:
        return member.http.get("/api/v1/agents/helper").status_code == 200

    company.desk.wait(lambda: knows(company.desk), "the desk does not know it")
    session = company.begin("say I help", "helper")["id"]
    company.wait_state(company.front, session, "done")
    assert company.texts(company.desk, session) == ["I help"]

    words = json.dumps({"to": "helper", "text": "say asked by another"})
    session = company.begin(f"tool agents_message {words}")["id"]
    company.wait_state(company.front, session, "done")
    page = company.front.http.get(f"/api/v1/sessions/{session}/transcript").text
    assert "asked by another" in page

    assert company.front.http.delete("/api/v1/agents/helper").status_code == 204
    company.desk.wait(lambda: not knows(company.desk), "the desk still knows it")


@pytest.mark.long
def test_a_conversation_is_deleted_on_every_machine(company: Company) -> None:
    session = company.begin("write kept.txt words")["id"]
    company.front.wait(
        lambda: bool(company.rows("select 1 from ask where state = 'open'")), "nothing is asked"
    )
    company.worker.wait(company.worker.workspace(session=session).is_dir, "no workspace")
    (row,) = company.rows(
        "select p.id from place p join session s on s.place = p.id where s.id = ?", session
    )

    gone = company.front.http.request(
        "DELETE", f"/api/v1/conversations/{row[0]}", params={"discard": "true"}
    )

    assert gone.status_code == 204, gone.text
    assert not company.worker.workspace(session=session).exists()
    assert company.desk.http.get(f"/api/v1/sessions/{session}").status_code == 404
    assert company.rows("select count(*) from turn where session = ?", session) == [(0,)]


@pytest.mark.long
def test_a_purged_text_is_gone_from_every_machine(company: Company) -> None:
    leaked = "zq7-Pelican-4411-secret"
    session = company.begin("say nothing")["id"]
    company.wait_state(company.front, session, "done")
    file = company.worker.workspace(session=session) / "notes.txt"
    file.write_text(f"the key is {leaked}")

    done = company.front.http.post("/api/v1/purges", json={"text": leaked})

    assert done.status_code == 200, done.text
    assert leaked not in file.read_text()
    assert done.json()["files"] == 1
    again = company.front.http.post(
        f"/api/v1/sessions/{session}/messages", json={"text": f"say {leaked}"}
    )
    assert again.status_code == 202
    company.wait_state(company.desk, session, "done", 1)
    assert leaked not in "".join(company.texts(company.desk, session))


@pytest.mark.long
def test_a_fork_that_a_front_makes_has_the_agents_own_conversation(company: Company) -> None:
    session = company.begin("say plover")["id"]
    company.wait_state(company.front, session, "done")

    forked = company.front.http.post(f"/api/v1/sessions/{session}/fork", json={})

    assert forked.status_code == 201, forked.text
    number = forked.json()["id"]
    told = company.front.http.post(f"/api/v1/sessions/{number}/messages", json={"text": "recall"})
    assert told.status_code == 202
    company.wait_state(company.front, number, "done")
    assert ("forked_whole",) in company.rows("select text from transcript")
    assert "You told me:\n- say plover" in company.texts(company.front, number)[-1]
