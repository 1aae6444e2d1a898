"""Large files: real content in a clone, new ones sent on, and never a token in an agent's reach."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.workspaces import Clone
from app.repos.lfs import Pointer, parse_pointer
from tests.support.git_server import GitServer, pointer
from tests.support.variants import quick
from tests.support.yard import READ, SECRET, WRITE, Yard, open_yard

APP = "acme/app"
BRANCH = "agent/demo/web-t1"
ATTRIBUTES = "*.bin filter=lfs diff=lfs merge=lfs -text\n"
CONTENT = b"large\0content\n" * 1000
COMMIT = "git add . && git commit -qm Large"

needs_lfs = pytest.mark.skipif(
    shutil.which("git-lfs") is None, reason="git-lfs is not installed: large files cannot be tried"
)


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[Yard]:
    async with open_yard(tmp_path) as yard:
        kept = yard.server.keep_large(APP, CONTENT)
        yard.server.commit(APP, {".gitattributes": ATTRIBUTES, "a.bin": kept}, "Large")
        yield yard


def oid(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


async def opened(yard: Yard, clone: Clone | None = None) -> Clone:
    clone = clone or yard.clone()
    await yard.open(clone)
    return clone


def visits(yard: Yard, *what: str) -> list[tuple[str, str, int]]:
    return [
        (visit.what, visit.token, visit.status)
        for visit in yard.server.visits
        if visit.what in what
    ]


def large_parts(yard: Yard) -> list[Path]:
    """List what git-lfs left beside the large files that are kept."""
    mirrors = yard.mirrors.path(yard.clone().repository).parent
    return [path for path in mirrors.rglob("*") if path.parent.name in {"logs", "incomplete"}]


@pytest.mark.long
@needs_lfs
async def test_a_clone_opens_with_the_content_of_large_files(yard: Yard) -> None:
    clone = await opened(yard)

    said = await yard.checkouts.prepare(clone)

    assert said is None
    assert (clone.folder / "a.bin").read_bytes() == CONTENT
    assert await yard.do(clone, "git status --short") == (0, "")
    # The storage is shown its own key alone, and the token goes to nobody but the server.
    assert visits(yard, "download", "get") == [("download", WRITE, 200), ("get", "", 200)]


@pytest.mark.slow
@needs_lfs
async def test_a_second_clone_takes_large_files_from_the_mirror(yard: Yard) -> None:
    await opened(yard)
    second = await opened(yard, yard.clone(2, branch="agent/demo/web-t2"))

    assert (second.folder / "a.bin").read_bytes() == CONTENT
    assert len(visits(yard, "get")) == 1


@pytest.mark.slow
@needs_lfs
async def test_a_large_file_that_came_later_is_there_after_a_merge(yard: Yard) -> None:
    clone = await opened(yard)
    later = yard.server.keep_large(APP, b"later" * 500)
    yard.server.commit(APP, {"later.bin": later}, "Later")

    status, said = await yard.do(clone, "git fetch -q origin && git merge -q origin/main")

    assert status == 0, said
    assert (clone.folder / "later.bin").read_bytes() == b"later" * 500


@pytest.mark.slow
@needs_lfs
async def test_new_large_files_of_an_agent_are_sent_on_before_their_commits(yard: Yard) -> None:
    clone = await opened(yard)

    status, said = await yard.do(clone, f"echo new > b.bin; {COMMIT}; git push 2>&1")

    assert status == 0, said
    assert yard.server.large[APP][oid(b"new\n")] == b"new\n"
    assert yard.server.show(APP, BRANCH, "b.bin") == pointer(b"new\n").strip()
    sent = visits(yard, "put", "verify", "push")
    assert [what for what, _, status in sent if status == 200] == ["put", "verify", "push"]
    assert {token for what, token, _ in sent if what == "put"} == {""}


@pytest.mark.slow
@needs_lfs
async def test_large_files_left_uncommitted_are_delivered_with_the_rest(yard: Yard) -> None:
    clone = await opened(yard)
    await yard.do(clone, "echo left > b.bin")

    gathered = await yard.checkouts.gather(clone, "Left")
    refusal = await yard.checkouts.push(clone, gathered.commit)

    assert refusal == ""
    assert yard.server.large[APP][oid(b"left\n")] == b"left\n"
    assert yard.server.show(APP, BRANCH, "b.bin") == pointer(b"left\n").strip()


@pytest.mark.slow
@needs_lfs
async def test_what_no_push_points_to_never_leaves(yard: Yard) -> None:
    clone = await opened(yard)
    workflow = "mkdir -p .github/workflows; echo on > .github/workflows/a.yml"

    status, said = await yard.do(clone, f"echo new > b.bin; {workflow}; {COMMIT}; git push 2>&1")

    assert status != 0
    assert "Changes to workflow files need a person's approval" in said
    assert oid(b"new\n") not in yard.server.large[APP]


@pytest.mark.slow
@needs_lfs
async def test_a_large_file_with_a_secret_in_it_is_refused_in_words(yard: Yard) -> None:
    clone = await opened(yard)
    planted = f"(head -c 5000000 /dev/zero; echo {SECRET}) > b.bin"

    status, said = await yard.do(clone, f"{planted}; {COMMIT}; git push --no-verify 2>&1")
    by_bridge = await yard.checkouts.push(clone, (await yard.checkouts.gather(clone, "x")).commit)

    assert status != 0
    assert "The Git LFS content of b.bin was not uploaded" in said
    assert "holds a secret that the bridge knows" in by_bridge
    assert yard.server.branches(APP) == ["main"]
    assert set(yard.server.large[APP]) == {oid(CONTENT)}


@pytest.mark.slow
@needs_lfs
async def test_a_reviewer_reads_large_files_and_sends_none(yard: Yard) -> None:
    head = yard.server.head(APP, "main")
    clone = await opened(yard, yard.clone(way="detached", start=head))

    status, said = await yard.do(
        clone, f"cat a.bin > copy; echo new > b.bin; {COMMIT}; git lfs push origin HEAD 2>&1"
    )

    assert (clone.folder / "copy").read_bytes() == CONTENT
    assert status != 0
    assert "This session is read-only" in said


@pytest.mark.long
@needs_lfs
@pytest.mark.parametrize(
    "spoil",
    [lambda server: server.large.clear(), lambda server: server.broken.add(oid(CONTENT))],
    ids=["missing", "damaged"],
)
async def test_what_cannot_be_had_stays_a_pointer_and_that_is_said(
    yard: Yard, spoil: Callable[[GitServer], None]
) -> None:
    spoil(yard.server)
    clone = await opened(yard)

    said = await yard.checkouts.prepare(clone)

    assert said is not None
    assert "Git LFS files could not be fetched" in said
    assert "(1): a.bin." in said
    assert (clone.folder / "a.bin").read_text() == pointer(CONTENT)
    assert (await yard.checkouts.gather(clone, "Nothing")).commit == yard.server.head(APP, "main")


async def test_without_git_lfs_pointers_stay_and_that_is_said(
    yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.repos.checkouts.shutil.which", lambda *_args, **_named: None)
    clone = await opened(yard)

    said = await yard.checkouts.prepare(clone)
    status, words = await yard.do(clone, f"echo x > x; {COMMIT}; git push")

    assert said is not None
    assert "git-lfs is not installed on the bridge's machine" in said
    assert (clone.folder / "a.bin").read_text() == pointer(CONTENT)
    assert status == 0, words


@pytest.mark.slow
@needs_lfs
async def test_an_lfs_server_on_another_host_is_not_gone_to(yard: Yard) -> None:
    yard.server.commit(APP, {".lfsconfig": "[lfs]\n\turl = https://evil.example.com/x\n"}, "Evil")
    clone = await opened(yard)

    _, said = await yard.do(clone, "git lfs pull 2>&1")

    assert "names another host" in said
    assert visits(yard, "download") == []


@pytest.mark.slow
@needs_lfs
async def test_a_server_named_for_pushes_alone_is_not_gone_to(yard: Yard) -> None:
    named = "[lfs]\n\tpushurl = http://127.0.0.1:9/x\n\tskipdownloaderrors = true\n"
    yard.server.commit(APP, {".lfsconfig": named}, "Elsewhere")
    clone = await opened(yard)

    status, said = await yard.do(clone, f"echo new > b.bin; {COMMIT}; git push 2>&1")

    assert status == 0, said
    assert yard.server.large[APP][oid(b"new\n")] == b"new\n"


@pytest.mark.slow
@needs_lfs
async def test_whoever_the_server_sends_us_to_gets_no_token(yard: Yard, tmp_path: Path) -> None:
    with GitServer(tmp_path / "elsewhere") as elsewhere:
        elsewhere.keep_large(APP, CONTENT)
        yard.server.large_elsewhere = elsewhere.url
        await opened(yard)

        assert {visit.token for visit in elsewhere.visits} <= {""}


@pytest.mark.slow
@needs_lfs
async def test_a_file_that_does_not_end_where_it_should_is_not_written_on(yard: Yard) -> None:
    yard.server.endless.add(oid(CONTENT))
    clone = await opened(yard)

    _, said = await yard.do(clone, "git lfs pull 2>&1")

    assert "file too large" in said, said
    assert (clone.folder / "a.bin").read_text() == pointer(CONTENT)
    assert large_parts(yard) == []


@pytest.mark.slow
@needs_lfs
async def test_a_failure_leaves_no_token_on_the_disk(yard: Yard) -> None:
    yard.server.large.clear()
    clone = await opened(yard)

    _, said = await yard.do(clone, "git lfs pull 2>&1")

    assert "git-lfs says: Object does not exist" in said, said
    assert yard.server.url not in said
    files = [path for path in yard.folder.rglob("*") if path.is_file()]
    assert [path for path in files if WRITE.encode() in path.read_bytes()] == []
    assert large_parts(yard) == []


@pytest.mark.long
@needs_lfs
async def test_no_token_is_in_the_reach_of_an_agent_that_uses_large_files(yard: Yard) -> None:
    clone = await opened(yard)
    script = (
        f"echo new > b.bin; {COMMIT}; git push 2>&1; env; cat .git/config; "
        "cat .git/lfs/logs/* 2>/dev/null; git config --list"
    )

    _, said = await yard.do(clone, script)

    assert "agent-bridge" in said
    assert [token for token in (WRITE, READ, "x-access-token", "X-Storage") if token in said] == []


@pytest.mark.parametrize(
    "question",
    quick(
        3,
        [
            b"",
            b"\n",
            b"{}\n",
            b"[" * 70000,
            b'{"what": "get", "oid": "../../x", "size": 1}\n',
            b'{"what": "get", "oid": 7, "size": 1}\n',
            json.dumps({"what": "put", "oid": "0" * 64, "size": 10**15}).encode() + b"\n",
            json.dumps({"what": "put", "oid": "0" * 64, "size": -1}).encode() + b"\n",
            json.dumps({"what": "put", "oid": "0" * 64, "size": 3}).encode() + b"\nabc",
            json.dumps({"what": "put", "oid": "0" * 64, "size": 9}).encode() + b"\nshort",
        ],
    ),
)
async def test_odd_questions_at_the_door_are_refused_and_leave_nothing(
    yard: Yard, question: bytes
) -> None:
    clone = await opened(yard, replace(yard.clone(), way="branch"))
    door = yard.folder / "gates" / clone.folder.name / "door"
    folder = os.open(door, os.O_RDONLY)
    reader, writer = await asyncio.open_unix_connection(f"/proc/self/fd/{folder}/lfs")
    writer.write(question)
    writer.write_eof()

    with suppress(ConnectionError):
        answer = await asyncio.wait_for(reader.read(), 5)
        assert b"no " in answer
    writer.close()
    os.close(folder)

    waiting = door.parent / "lfs"
    assert not waiting.exists() or list(waiting.iterdir()) == []


@given(st.binary(max_size=2000))
def test_what_is_no_pointer_is_none(content: bytes) -> None:
    assert parse_pointer(content) is None
    assert parse_pointer(pointer(content).encode()) == Pointer(oid(content), len(content))
    assert parse_pointer(pointer(content).encode() + b"more") is None
