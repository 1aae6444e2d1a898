"""Files of GitHub: fetched by signed addresses, from GitHub alone, and no larger than allowed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from app.model.types import File
from app.services.github import wording
from app.services.github.attachments import Files, Hosts, files_in
from app.services.github.names import Name, Spot
from sim.github.git import Answer
from sim.github.state import Comment, Issue
from sim.github.world import SimulatedGithub
from tests.support.clock import HastyClock
from tests.support.github_desk import Desk

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n a picture"


class Counter(Desk):
    """A desk at which one agent fetches files."""

    def fetcher(self, uploads: Path, agent: str = "claude") -> Files:
        return Files(self.apis[agent], uploads, Hosts(self.github.url))

    def dropped(self, name: str, content: bytes) -> tuple[Issue, Comment, File]:
        """Drop a file into a comment."""
        issue = self.github.open_issue("ann", self.repository, "A bug")
        address = self.github.assets.drop(self.repository, name, content)
        comment = self.github.comment("ann", issue, f"See {address} please")
        spot = Spot(self.repository.full_name, issue.number)
        said = Name("comment", comment.id)
        (file,) = files_in(comment.body, spot, said, Hosts(self.github.url))
        return issue, comment, file


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Counter]:
    with SimulatedGithub(tmp_path / "github") as github:
        made = Counter(github, HastyClock())
        yield made
        await made.close()


@pytest.mark.parametrize("private", [True, False])
async def test_a_picture_is_fetched_by_its_signed_address_and_without_a_token(
    desk: Counter, tmp_path: Path, private: bool
) -> None:
    desk.repository.private = private
    _, _, file = desk.dropped("shot.png", PNG)

    found = await desk.fetcher(tmp_path / "uploads").fetch(file)

    assert (tmp_path / "uploads" / found.url).read_bytes() == PNG
    assert (found.name, found.media_type) == (f"{file.name}.png", "image/png")
    assert (tmp_path / "uploads" / file.url).is_file()  # by the name that the message keeps
    [(path, authorization, status)] = desk.github.assets.asked
    assert (path.startswith("/private-user-images/"), authorization, status) == (True, "", 200)

    again = await desk.fetcher(tmp_path / "uploads").fetch(file)
    assert again == found
    assert len(desk.github.assets.asked) == 1


async def test_a_file_of_a_public_repository_is_followed_to_where_it_lies(
    desk: Counter, tmp_path: Path
) -> None:
    _, _, file = desk.dropped("log.txt", b"a log")

    found = await desk.fetcher(tmp_path / "uploads").fetch(file)

    assert (tmp_path / "uploads" / found.url).read_bytes() == b"a log"
    assert (found.name, found.media_type) == ("log.txt", "text/plain")
    (_, first, _), (_, second, _) = desk.github.assets.asked
    assert first.startswith("Bearer ghs_")
    assert second == ""  # whom it is handed on to does not see the token


async def test_what_cannot_be_had_is_replaced_by_a_note_that_says_why(
    desk: Counter, tmp_path: Path
) -> None:
    desk.repository.private = True
    _, _, file = desk.dropped("log.txt", b"a log")

    found = await desk.fetcher(tmp_path / "uploads").fetch(file)

    note = (tmp_path / "uploads" / found.url).read_text()
    assert found.name == "log.txt.missing.txt"
    assert note.startswith("log.txt was attached, but could not be fetched from GitHub: ")
    assert wording.SIGNED_IN_ONLY in note


async def test_an_address_that_the_message_does_not_show_is_not_fetched(
    desk: Counter, tmp_path: Path
) -> None:
    issue, comment, file = desk.dropped("shot.png", PNG)
    desk.github.edit_comment("ann", issue, comment, "never mind")

    found = await desk.fetcher(tmp_path / "uploads").fetch(file)

    assert "no longer contains it" in (tmp_path / "uploads" / found.url).read_text()
    assert desk.github.assets.asked == []


async def test_a_file_that_is_too_large_is_not_kept(
    desk: Counter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.core.files.download.FILE_BYTES", 10)
    _, _, file = desk.dropped("shot.png", PNG)

    found = await desk.fetcher(tmp_path / "uploads").fetch(file)

    assert "it is larger than" in (tmp_path / "uploads" / found.url).read_text()
    assert not (tmp_path / "uploads" / file.url).exists()


@pytest.mark.slow
async def test_two_agents_fetch_the_same_file_at_once_300_times(
    desk: Counter, tmp_path: Path
) -> None:
    _, _, file = desk.dropped("shot.png", PNG)

    for number in range(300):
        uploads = tmp_path / "uploads" / str(number)
        found, same = await asyncio.gather(
            *(desk.fetcher(uploads, agent).fetch(file) for agent in ("claude", "codex"))
        )

        assert found == same
        assert (uploads / found.url).read_bytes() == PNG
        assert {path.name for path in (uploads / file.url).parent.iterdir()} == {
            file.name,
            found.name,
        }


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(302, {"Location": "http://127.0.0.1:9/elsewhere"}, b""), "not on a GitHub host"),
        (Answer(302, {"Location": "//evil.example/x"}, b""), "not on a GitHub host"),
        (
            Answer(302, {"Location": "/private-user-images/1/x?jwt=1"}, b""),
            "too many redirects",
        ),
        (Answer(200, {"Content-Type": "text/html"}, b"sign in"), "signed-in users"),
        (Answer(401, {}, b""), "GitHub answered 401"),
        (Answer(500, {}, b""), "GitHub answered 500"),
    ],
)
async def test_nothing_else_than_the_file_is_taken_for_it(
    desk: Counter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: Answer,
    why: str,
) -> None:
    _, _, file = desk.dropped("shot.png", PNG)
    monkeypatch.setattr(desk.github.assets, "_answer", lambda *_: answer)

    found = await desk.fetcher(tmp_path / "uploads").fetch(file)

    assert why in (tmp_path / "uploads" / found.url).read_text()
    assert [who for _, who, _ in desk.github.assets.asked if who] == []


async def test_a_signed_address_ends_and_an_unsigned_one_of_a_private_repository_is_none(
    tmp_path: Path,
) -> None:
    now = [1_000_000.0]
    with SimulatedGithub(tmp_path / "github", lambda: now[0]) as github:
        repository = github.repository("acme/widgets", {}, private=True)
        address = github.assets.drop(repository, "shot.png", PNG)
        signed = github.assets.render(address).partition('src="')[2].partition('"')[0]
        async with httpx.AsyncClient(trust_env=False) as client:
            good = await client.get(signed.replace("&amp;", "&"))
            unsigned = await client.get(address, headers={"Authorization": "Bearer ghs_x"})
            forged = await client.get(signed.replace("jwt=1", "jwt=2"))
            now[0] += 301
            late = await client.get(signed.replace("&amp;", "&"))

    assert (good.status_code, good.content) == (200, PNG)
    assert (unsigned.status_code, forged.status_code, late.status_code) == (404, 401, 401)
