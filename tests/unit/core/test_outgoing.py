"""What agents make for people: taken once, checked, and nothing that only points at something."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.clock import SystemClock
from app.core.files.outgoing import Given, OutgoingFiles
from app.model.keys import SessionKey
from app.model.policy import PRESETS
from app.model.ports import AgentListener
from app.model.posts import MadeFile
from app.model.text import safe_name
from app.model.types import Turn, TurnState
from app.model.updates import AskOption, AskRequest, FileUpdate, ToolUpdate
from app.store.stores import Stores
from app.vault import Vault
from tests.support.base import make_base
from tests.support.desk import Desk, Rules, running_desk, say_ok
from tests.support.memory import decision, heard

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n and more"
SECRET = "correct-horse-battery-staple"
KEY = SessionKey("web", "t1", "demo")
TURN = Turn(1, 1, KEY, TurnState.PROMPTED)


class Workplace:
    """A workspace and the folder beside it, as far as files go out of them."""

    def __init__(self, root: Path) -> None:
        self.workspace = root / "workspaces" / "1-demo"
        self.folder = root / "workspaces" / "1-demo.out"
        self.uploads = root / "uploads"
        self.workspace.mkdir(parents=True)
        self.folder.mkdir()
        self._outgoing = OutgoingFiles(
            # It is asked for nothing but the post of a turn.
            make_base(
                cast("Stores", SimpleNamespace(posts=self)), SystemClock(), vault=Vault([SECRET])
            ),
            self.uploads,
            link=lambda url: f"https://bridge.example/uploads/{url}",
        )

    def of_turn(self, turn: int) -> None:
        return None

    async def end(self, *spoken: FileUpdate) -> Given:
        """End a turn in which the agent said something with files."""
        handover = self._outgoing.of(TURN, self.folder)
        for update in spoken:
            await handover.take(update, self.workspace)
        found = await handover.collect()
        await handover.settle()
        return found

    def kept(self, found: Given) -> dict[str, bytes]:
        return {file.name: (self.uploads / file.url).read_bytes() for file in found.files}


@pytest.fixture
def work(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


async def test_what_lies_ready_is_kept_and_leaves_the_folder(work: Workplace) -> None:
    (work.folder / "report.md").write_text("# All is well\n")
    (work.folder / "plot.png").write_bytes(PNG)
    (work.folder / "lie.png").write_text("no picture")

    found = await work.end()

    assert work.kept(found) == {
        "lie.png": b"no picture",
        "plot.png": PNG,
        "report.md": b"# All is well\n",
    }
    lie, plot, report = found.files
    assert (lie.media_type, plot.media_type) == ("application/octet-stream", "image/png")
    assert report.link == f"https://bridge.example/uploads/{report.url}"
    assert report.size == 14
    assert found.refused == ""
    assert list(work.folder.iterdir()) == []
    assert (await work.end()).files == ()


async def test_a_hard_link_is_not_sent(work: Workplace, tmp_path: Path) -> None:
    (tmp_path / "private").write_text("of the bridge")
    (work.folder / "link.txt").hardlink_to(tmp_path / "private")
    (work.workspace / "spoken.txt").hardlink_to(tmp_path / "private")
    spoken = FileUpdate("spoken.txt", "", address=(work.workspace / "spoken.txt").as_uri())

    found = await work.end(spoken)

    assert found.files == ()
    why = "was not sent: it is a hard link to a file elsewhere; only copies are sent."
    assert found.refused == f"`spoken.txt` {why} `link.txt` {why}"
    assert (work.folder / "link.txt").exists()


async def test_nothing_is_followed_that_only_points_at_a_file(
    work: Workplace, tmp_path: Path
) -> None:
    (tmp_path / "private").write_text("of the bridge")
    (work.folder / "link.txt").symlink_to(tmp_path / "private")
    (work.folder / "folder").symlink_to(tmp_path)
    os.mkfifo(work.folder / "pipe")
    (work.folder / "nested").mkdir()
    (work.folder / "empty.txt").touch()
    (work.folder / "fine.txt").write_text("fine")

    found = await work.end()

    assert work.kept(found) == {"fine.txt": b"fine"}
    assert "`link.txt` was not sent: it is not a regular file." in found.refused
    assert "`pipe` was not sent: it is not a regular file." in found.refused
    assert "`nested` was not sent: it is a folder; only files are sent." in found.refused
    assert "`empty.txt` was not sent: it is empty." in found.refused


async def test_sockets_and_huge_holes_are_not_sent(work: Workplace) -> None:
    with (work.folder / "sparse").open("wb") as sparse:
        sparse.truncate(30 * 1024**3)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(work.folder / "socket"))

        found = await work.end()

    assert work.kept(found) == {}
    assert all(f"`{name}` was not sent" in found.refused for name in ("sparse", "socket"))


async def test_what_was_refused_is_said_once_and_stays_where_it_is(
    work: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.core.files.outgoing.FILE_BYTES", 10)
    (work.folder / "film.mp4").write_bytes(b"x" * 11)

    first, second = await work.end(), await work.end()

    assert first.files == second.files == ()
    assert first.refused.startswith("`film.mp4` was not sent: it has 11 bytes")
    assert second.refused == ""
    assert (work.folder / "film.mp4").exists()


async def test_more_than_one_turn_may_send_comes_with_the_next(work: Workplace) -> None:
    for number in range(13):
        (work.folder / f"{number:02}.txt").write_text(str(number))

    first, second = await work.end(), await work.end()

    assert [file.name for file in first.files] == [f"{number:02}.txt" for number in range(10)]
    assert "`12.txt` was not sent: only 10 files per turn are sent" in first.refused
    assert [file.name for file in second.files] == ["10.txt", "11.txt", "12.txt"]


async def test_what_is_too_much_together_comes_with_the_next(
    work: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.core.files.outgoing.ALL_BYTES", 10)
    (work.folder / "a.txt").write_bytes(b"x" * 6)
    (work.folder / "b.txt").write_bytes(b"y" * 6)

    first, second = await work.end(), await work.end()

    assert list(work.kept(first)) == ["a.txt"]
    assert list(work.kept(second)) == ["b.txt"]


@pytest.mark.parametrize(
    "content",
    [
        f"token={SECRET}\n".encode(),
        b"\xff\xfe\x00" + SECRET.encode() + b"\xff",
        SECRET.encode("utf-16-le"),
        SECRET.encode().hex().encode(),
    ],
)
async def test_a_file_that_holds_a_secret_is_not_sent(work: Workplace, content: bytes) -> None:
    (work.folder / "notes.txt").write_bytes(content)
    (work.folder / f"{SECRET}.txt").write_text("only its name tells")

    found = await work.end()

    assert list(work.kept(found)) == ["_secret_.txt"]
    assert found.refused == "`notes.txt` was not sent: it holds a secret that the bridge knows."
    assert SECRET not in repr(found)


async def test_files_in_the_midst_of_an_answer_are_kept_each_under_its_own_name(
    work: Workplace,
) -> None:
    (work.workspace / "docs").mkdir()
    (work.workspace / "docs" / "ein plan.md").write_text("plan")
    address = (work.workspace / "docs" / "ein plan.md").as_uri()

    found = await work.end(
        FileUpdate("image.png", "", PNG),
        FileUpdate("image.png", "", PNG + b"2"),
        FileUpdate("../../plan.md", "", address=address),
    )

    assert work.kept(found) == {"image.png": PNG, "image-2.png": PNG + b"2", "plan.md": b"plan"}


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/hostname",
        "file://elsewhere{workspace}/fine.txt",
        "file://{workspace}/../private",
        "file://{workspace}/%2e%2e/private",
        "file://{workspace}/out/private",
        "file://{workspace}/link.txt",
        "file://{workspace}",
        "file://{workspace}/missing.txt",
        "file://{workspace}/fine.txt/below",
        "file://{workspace}/a%00b",
        "file://[",
    ],
)
async def test_a_link_out_of_the_workspace_leads_nowhere(
    work: Workplace, tmp_path: Path, address: str
) -> None:
    (tmp_path / "workspaces" / "private").write_text("of the bridge")
    (work.workspace / "fine.txt").write_text("fine")
    (work.workspace / "out").symlink_to(tmp_path / "workspaces")
    (work.workspace / "link.txt").symlink_to(tmp_path / "workspaces" / "private")

    update = FileUpdate("it", "", address=address.format(workspace=work.workspace))
    found = await work.end(update)

    assert found.files == ()
    assert found.refused.startswith("`it` was not sent: ")


NAMES = st.binary(min_size=1, max_size=80).filter(
    lambda name: b"/" not in name and b"\0" not in name and name not in {b".", b".."}
)


@pytest.mark.long
@given(st.sets(NAMES, min_size=1, max_size=5))
async def test_whatever_a_file_is_called_its_bytes_are_kept_under_a_plain_name(
    names: set[bytes],
) -> None:
    with TemporaryDirectory() as root:
        work = Workplace(Path(root))
        for number, name in enumerate(sorted(names)):
            with open(os.path.join(os.fsencode(work.folder), name), "wb") as file:  # noqa: PTH118, PTH123, ASYNC230 - names that are no text
                file.write(b"%d" % number)

        found = await work.end()

        assert sorted((work.uploads / file.url).read_bytes() for file in found.files) == [
            b"%d" % number for number in range(len(names))
        ]
        assert all(safe_name(file.name) == file.name for file in found.files)
        assert {path.parent.parent for path in work.uploads.glob("*/*")} == {work.uploads}


def files_of(desk: Desk, turn: int) -> tuple[MadeFile, ...]:
    post = desk.stores.posts.of_turn(turn)
    assert post is not None
    return post.content.files


async def test_a_turn_ends_with_what_its_agent_made(tmp_path: Path) -> None:
    folder = tmp_path / "workspaces" / "1-demo.out"
    async with running_desk(tmp_path) as desk:

        async def script(listener: AgentListener) -> None:
            (folder / "report.md").write_text("# Done\n")
            await listener.on_update(FileUpdate("shot.png", "\n[image]\n", PNG))

        desk.launcher.script = script
        await desk.manager.start_or_continue(decision(heard("make a report"), "demo"))
        await desk.reached(1, "done")

        (report, shot) = files_of(desk, 1)
        assert (report.name, shot.name) == ("report.md", "shot.png")
        assert f"into the folder {folder};" in desk.launcher.told("prompt")[0]
        entries = await desk.stores.transcript.read(1, after=0, limit=50)
        (note,) = [entry for entry in entries if entry.data.get("files")]
        assert note.text == "Made report.md (7 bytes), shot.png (17 bytes)."
        assert [file["url"] for file in note.data["files"]] == [report.url, shot.url]
        assert "[image]" in "".join(entry.text for entry in entries if entry.kind == "text")
        assert not folder.with_name("1-demo.out.taken").joinpath("1").exists()


async def test_whoever_may_edit_may_lay_files_ready_unasked(tmp_path: Path) -> None:
    folder = tmp_path / "workspaces" / "1-demo.out"
    answers: list[str | None] = []

    async def script(listener: AgentListener) -> None:
        tool = ToolUpdate("c1", "Write", "edit", locations=(str(folder / "a.md"),))
        options = (AskOption("yes", "Allow once", "allow_once"),)
        answers.append(await listener.on_ask(AskRequest("c1", "Write", options, tool)))

    async with running_desk(tmp_path, rules=Rules(policy=PRESETS["trusted"])) as desk:
        desk.launcher.script = script
        await desk.manager.start_or_continue(decision(heard("make a report"), "demo"))
        await desk.reached(1, "done")

    assert answers == ["yes"]


async def test_what_a_crash_left_aside_is_sent_with_the_next_turn_and_only_once(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "workspaces" / "1-demo.out"
    aside = tmp_path / "workspaces" / "1-demo.out.taken"
    async with running_desk(tmp_path) as desk:
        await desk.manager.start_or_continue(decision(heard("one"), "demo"))
        await desk.reached(1, "done")
        (aside / "1").mkdir(parents=True)
        (aside / "1" / "late.txt").write_text("taken before a crash")

        await desk.manager.start_or_continue(decision(heard("two"), "demo"))
        await desk.reached(2, "done")
        assert [file.name for file in files_of(desk, 2)] == ["late.txt"]
        (aside / "2").mkdir(parents=True)
        (aside / "2" / "late.txt").write_text("told of before a crash")
        (folder / "new.txt").write_text("new")

        await desk.manager.start_or_continue(decision(heard("three"), "demo"))
        await desk.reached(3, "done")

        assert [file.name for file in files_of(desk, 3)] == ["new.txt"]
        assert not (aside / "2").exists()


async def test_what_cannot_be_kept_now_is_kept_with_the_next_turn(tmp_path: Path) -> None:
    folder = tmp_path / "workspaces" / "1-demo.out"
    async with running_desk(tmp_path) as desk:

        async def script(_listener: AgentListener) -> None:
            (folder / "report.md").write_text("# Done\n")

        desk.launcher.script = script
        (tmp_path / "uploads").write_text("in the way")
        await desk.manager.start_or_continue(decision(heard("one"), "demo"))
        await desk.reached(1, "done")
        post = desk.stores.posts.of_turn(1)
        assert post is not None
        assert post.content.note.startswith("Files could not be stored (")
        desk.launcher.script = say_ok
        (tmp_path / "uploads").unlink()
        await desk.manager.start_or_continue(decision(heard("two"), "demo"))
        await desk.reached(2, "done")

        assert [file.name for file in files_of(desk, 2)] == ["report.md"]


async def test_after_a_stop_nothing_is_sent_until_the_next_turn_ends(tmp_path: Path) -> None:
    folder = tmp_path / "workspaces" / "1-demo.out"
    async with running_desk(tmp_path) as desk:
        await desk.manager.start_or_continue(decision(heard("one"), "demo"))
        await desk.reached(1, "done")

        async def script(listener: AgentListener) -> None:
            (folder / "half.txt").write_text("half")
            await desk.manager.stop(1)

        desk.launcher.script = script
        await desk.manager.start_or_continue(decision(heard("two"), "demo"))
        await desk.reached(2, "cancelled")
        assert files_of(desk, 2) == ()
        desk.launcher.script = say_ok
        await desk.manager.start_or_continue(decision(heard("three"), "demo"))
        await desk.reached(3, "done")

        assert [file.name for file in files_of(desk, 3)] == ["half.txt"]
