"""What is read of a conversation on GitHub: files from GitHub alone; what purging takes out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.posts import PostContent, PostSend
from app.model.types import File
from app.services.github import wording
from app.services.github.conversation import FILES, FileOrigin, Files, Hosts, files_in, shown
from app.services.github.names import Name, Spot
from app.vault import vault_of
from sim.github.git import Answer
from sim.github.state import Comment, Issue
from sim.github.world import SimulatedGithub
from tests.support.clock import HastyClock
from tests.support.github_desk import Desk

GITHUB = Hosts("https://github.com")
ENTERPRISE = Hosts("https://git.example.com")
SPOT = Spot("acme/widgets", 7)
COMMENT = Name("comment", 41)
UUID = "1a2b3c4d-1111-2222-3333-444455556666"
IMAGE = f"https://github.com/user-attachments/assets/{UUID}"


def names(text: str, hosts: Hosts = GITHUB) -> list[str]:
    return [file.name for file in files_in(text, SPOT, COMMENT, hosts)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"![]({IMAGE})", ["attached-1a2b3c4d"]),
        (f'<img src="{IMAGE}">', ["attached-1a2b3c4d"]),
        (f"{IMAGE}\n{IMAGE}", ["attached-1a2b3c4d"]),
        (f"https://github.com/acme/widgets/assets/99/{UUID}", ["attached-1a2b3c4d"]),
        ("[log](https://github.com/user-attachments/files/12/my.log.txt)", ["my.log.txt"]),
        ("https://github.com/acme/widgets/files/12/trace.zip", ["trace.zip"]),
        ("https://github.com/user-attachments/files/12/%2e%2e%2fpasswd", ["_2e_2e_2fpasswd"]),
        (IMAGE.replace("github.com", "github.com.evil.example"), []),
        (IMAGE.replace("https", "http"), []),
        ("https://github.com/user-attachments/assets/not-a-number", []),
        ("https://github.com/acme/widgets/blob/main/files/12/x", []),
    ],
)
def test_what_was_dropped_is_found_by_the_addresses_that_github_makes(
    text: str, found: list[str]
) -> None:
    assert names(text) == found


def test_no_more_than_some_files_of_one_message_are_taken() -> None:
    text = "\n".join(
        f"https://github.com/user-attachments/files/{n}/a.txt" for n in range(FILES + 5)
    )

    files = files_in(text, SPOT, COMMENT, GITHUB)

    assert len(files) == FILES
    assert len({file.url for file in files}) == FILES
    assert all(file.url.partition("/")[0].isalnum() for file in files)


def test_a_file_knows_where_it_was_dropped() -> None:
    (file,) = files_in(IMAGE, SPOT, Name("comment", 41, "edited"), GITHUB)

    assert FileOrigin.parse(file.origin) == FileOrigin(SPOT, COMMENT, IMAGE)


@pytest.mark.parametrize(
    ("hosts", "address", "allowed"),
    [
        (GITHUB, "https://github.com/x", True),
        (GITHUB, "https://private-user-images.githubusercontent.com/1/2.png?jwt=x", True),
        (GITHUB, "https://github-production-user-asset-6210df.s3.amazonaws.com/1", True),
        (GITHUB, "https://github-production-evil.s3.amazonaws.com/1", False),
        (GITHUB, "http://github.com/x", False),
        (GITHUB, "https://githubusercontent.com.evil.example/x", False),
        (GITHUB, "https://evilgithubusercontent.com/x", False),
        (GITHUB, "https://github.com@evil.example/x", False),
        (GITHUB, "https://github.com:444/x", False),
        (GITHUB, "https://x.githubusercontent.com:444/x", False),
        (GITHUB, "https://evil.example\\.githubusercontent.com/x", False),
        (GITHUB, "https://127.0.0.1/x", False),
        (GITHUB, "//github.com/x", False),
        (GITHUB, "/x", False),
        (GITHUB, "", False),
        (ENTERPRISE, "https://git.example.com/storage/1?token=x", True),
        (ENTERPRISE, "https://media.git.example.com/1", True),
        (ENTERPRISE, "https://other.example.com/1", False),
        (ENTERPRISE, "https://x.githubusercontent.com/1", False),
    ],
)
def test_files_come_from_hosts_of_github_alone(hosts: Hosts, address: str, allowed: bool) -> None:
    assert hosts.allows(address) is allowed


ODD = st.text(alphabet=st.sampled_from("https:/\\@#?.gitubcomrevlx%[]1 \t"), max_size=40)


@given(ODD, ODD)
def test_whatever_an_address_looks_like_its_host_is_one_of_githubs(before: str, after: str) -> None:
    address = f"{before}github.com{after}"

    is_githubs = GITHUB.allows(address)

    assert not is_githubs or f".{urlsplit(address).hostname}".endswith(
        (".github.com", ".githubusercontent.com")
    )


def test_the_signed_address_is_taken_from_what_people_see() -> None:
    signed = f"https://private-user-images.githubusercontent.com/1/7-{UUID}.png?jwt=a.b&amp;c=d"
    plain = f'<a href="{IMAGE}">it</a>'
    rendered = f'<p>{plain}<a href="{signed}"><img src="{signed}" alt="x"></a></p>'

    assert shown(rendered, IMAGE, GITHUB) == signed.replace("&amp;", "&")
    assert shown(plain, IMAGE, GITHUB) == IMAGE
    assert shown("<p>nothing</p>", IMAGE, GITHUB) is None
    evil = f'<img src="https://evil.example/{UUID}.png?jwt=x">'
    assert shown(evil, IMAGE, GITHUB) is None
    assert shown(plain, "https://evil.example/x", GITHUB) is None


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
    monkeypatch.setattr("app.core.files.attachments.FILE_BYTES", 10)
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


LEAKED = "zq7-Pelican-4411-secret"


def turn(desk: Desk, issue: Issue, text: str, state: str = "working") -> PostSend:
    content = PostContent(kind="turn", state=state, text=text)
    return PostSend("create", desk.key(issue), "ab-one", content)


def everything(issue: Issue) -> str:
    """Read all that GitHub shows of an issue, with the history of edits."""
    return repr([issue.title, issue.body, issue.comments])


async def test_own_comments_go_with_their_history_and_others_are_named(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    said = desk.github.comment("ann", issue, f"Use {LEAKED} here")
    working = replace(turn(desk, issue, f"with {LEAKED}"), remote_id="seen-1", op="replace")
    shown = await desk.claude.send(working)
    done = turn(desk, issue, f"Done with {LEAKED}, as asked.", "done")
    await desk.claude.send(replace(done, op="finish", remote_id=shown.remote_id))
    assert everything(issue).count(LEAKED) > 2

    cleaned = await desk.claude.purge(desk.key(issue), vault_of(LEAKED))

    (theirs, answer) = issue.comments
    assert cleaned.changed == 2
    assert [link.rpartition("-")[2] for link in cleaned.left] == [str(said.id)]
    assert theirs is said
    assert answer.body.startswith("Done with [secret], as asked.")
    assert everything(issue).count(LEAKED) == 1
    again = await desk.claude.purge(desk.key(issue), vault_of(LEAKED))
    assert (again.changed, again.left) == (0, cleaned.left)
