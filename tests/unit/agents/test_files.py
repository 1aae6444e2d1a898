"""The files of agents: which there can be, and that no write is lost, cut or led astray."""

from __future__ import annotations

import os
import string
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agents.files import FILE_BYTES, LOG_BYTES, OWN, SHARED, VERSIONS_KEPT, AgentFiles, log_of
from app.errors import Conflict, FileRefused, NotFound
from app.vault import Vault

SECRET = "hunter2-hunter2-hunter2"
LOG = "memory/2026-02-28.md"


@pytest.fixture
def files(tmp_path: Path) -> AgentFiles:
    return AgentFiles(tmp_path, Vault([SECRET]))


def written(folder: Path) -> list[str]:
    """List the files of agents below a folder that are no versions."""
    found = (each.relative_to(folder) for each in folder.glob("agents/**/*") if each.is_file())
    return sorted(str(each) for each in found if ".versions" not in each.parts)


def test_what_is_written_is_read_listed_and_private(files: AgentFiles, tmp_path: Path) -> None:
    for path in (*OWN, LOG):
        files.write("ada", path, f"{path}\r\nof Ada")
    for path in SHARED:
        files.write(None, path, f"{path} of all")

    read = [files.read("ada", path) for path in (*OWN, LOG)]
    assert [each.text for each in read if each] == [f"{path}\nof Ada" for path in (*OWN, LOG)]
    assert [each.path for each in files.list_files("ada")] == [*OWN, LOG]
    assert [each.path for each in files.list_files(None)] == [*SHARED]
    assert files.read("bob", "SOUL.md") is None
    assert files.list_files("bob") == []
    modes = {each.stat().st_mode & 0o077 for each in (tmp_path / "agents").rglob("*")}
    assert modes == {0}


def test_a_secret_is_never_kept(files: AgentFiles, tmp_path: Path) -> None:
    files.write("ada", "SOUL.md", f"the key is {SECRET}")
    by_hand = tmp_path / "agents" / "ada" / "TOOLS.md"
    by_hand.write_text(SECRET)

    found, edited = files.read("ada", "SOUL.md"), files.read("ada", "TOOLS.md")

    assert found is not None
    assert edited is not None
    assert SECRET not in (tmp_path / "agents" / "ada" / "SOUL.md").read_text()
    assert SECRET not in found.text + edited.text


@given(
    st.one_of(
        st.text(max_size=40),
        st.text(alphabet="./AGENTSmdUROLI-memory0123456789", max_size=30),
        st.sampled_from(
            [
                "../AGENTS.md",
                "./SOUL.md",
                "SOUL.md/",
                "soul.md",
                "SOUL.md\n",
                "memory",
                "card.json",
                "memory/2026-02-30.md",
                "memory/../SOUL.md",
                "memory/\u0662026-01-01.md",
                "/SOUL.md",
            ]
        ),
        st.builds("memory/{}.md".format, st.text(alphabet=string.digits + "-", max_size=12)),
    ),
    st.one_of(st.none(), st.just("ada"), st.text(alphabet="a-z./\\\0A", max_size=8)),
)
def test_only_the_listed_names_exist(path: str, agent: str | None) -> None:
    good = path in (SHARED if agent is None else OWN)
    if agent is not None and path.startswith("memory/") and path.isascii():
        day = path[len("memory/") : -len(".md")]
        good |= path == f"memory/{day}.md" and len(day) == 10 and is_day(day)
    good &= agent is None or (agent != "" and set(agent) <= set("az-") and agent[0] != "-")
    with TemporaryDirectory() as folder:
        kept = AgentFiles(Path(folder), Vault())
        calls = (
            lambda: kept.write(agent, path, "text"),
            lambda: kept.read(agent, path),
            lambda: kept.delete(agent, path),
            lambda: kept.undo(agent, path),
            lambda: kept.versions(agent, path),
        )

        refused = [is_refused(call) for call in calls]

        assert refused == [not good] * len(calls)
        assert good or written(Path(folder)) == []


def is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def is_refused(call: object) -> bool:
    assert callable(call)
    try:
        call()
    except FileRefused:
        return True
    return False


@given(st.sampled_from([("SOUL.md", FILE_BYTES), (LOG, LOG_BYTES)]), st.integers(-2, 2))
def test_a_file_is_as_long_as_it_may_be_and_no_longer(
    kind: tuple[str, int], difference: int
) -> None:
    path, limit = kind
    with TemporaryDirectory() as folder:
        kept = AgentFiles(Path(folder), Vault())
        text = "é" + "x" * (limit - 2 + difference)

        assert is_refused(lambda: kept.write("ada", path, text)) == (difference > 0)
        assert written(Path(folder)) == ([] if difference > 0 else [f"agents/ada/{path}"])


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("IDENTITY.md", "---\nnmae: x\n---\n", "Line 2: this is none of the keys. Write one of"),
        ("SOUL.md", "one\ntwo\0", "Line 2: there is a control character. Remove it."),
        ("SOUL.md", "\ud800", "Write it in UTF-8."),
        ("SOUL.md", "x" * (FILE_BYTES + 1), "It has more than 32 KiB. Shorten it."),
    ],
)
def test_a_bad_text_is_refused_with_the_remedy_and_the_good_one_stays(
    files: AgentFiles, path: str, text: str, words: str
) -> None:
    files.write("ada", path, "good")

    with pytest.raises(FileRefused, match=words.replace(".", r"\.")):
        files.write("ada", path, text)

    found = files.read("ada", path)
    assert found is not None
    assert found.text == "good"


@pytest.mark.parametrize(
    ("path", "content", "text", "problem"),
    [
        ("IDENTITY.md", b"---\nname: Ada\nage: 3\n---\nBe kind.", "Be kind.", "Line 3: "),
        ("SOUL.md", b"caf\xe9", "caf\ufffd", "It is not UTF-8 text"),
        ("SOUL.md", b"x" * (FILE_BYTES + 9), "x" * FILE_BYTES, "It has more than 32 KiB"),
    ],
)
def test_a_file_that_was_spoilt_by_hand_is_used_and_its_problem_told(
    files: AgentFiles, tmp_path: Path, path: str, content: bytes, text: str, problem: str
) -> None:
    folder = tmp_path / "agents" / "ada"
    folder.mkdir(parents=True)
    (folder / path).write_bytes(content)

    found = files.read("ada", path)

    assert found is not None
    assert found.text.endswith(text)
    assert found.problem.startswith(problem)


def test_every_change_can_be_undone_and_the_undoing_too(files: AgentFiles) -> None:
    files.write("ada", "SOUL.md", "one")
    files.write("ada", "SOUL.md", "two")
    files.delete("ada", "SOUL.md")

    undone = files.undo("ada", "SOUL.md")
    assert undone is not None
    assert undone.text == "two"
    assert files.undo("ada", "SOUL.md") is None
    assert files.read("ada", "SOUL.md") is None
    first = files.versions("ada", "SOUL.md")[-1]
    assert first.gone
    earlier = files.undo("ada", "SOUL.md", first.number + 1)
    assert earlier is not None
    assert earlier.text == "one"
    with pytest.raises(NotFound):
        files.undo("ada", "TOOLS.md")
    with pytest.raises(NotFound):
        files.undo("ada", "SOUL.md", 99)


def test_only_the_last_versions_are_kept(files: AgentFiles) -> None:
    for number in range(VERSIONS_KEPT + 5):
        files.write("ada", "SOUL.md", str(number))

    kept = files.versions("ada", "SOUL.md")

    texts = [files.version("ada", "SOUL.md", each.number) for each in kept]
    last = VERSIONS_KEPT + 3
    assert texts == [str(number) for number in range(last, last - VERSIONS_KEPT, -1)]


def test_a_change_of_a_text_that_is_no_longer_there_is_refused(files: AgentFiles) -> None:
    seen = files.write("ada", "SOUL.md", "one")
    files.write("ada", "SOUL.md", "two", expected=seen.digest)

    with pytest.raises(Conflict, match="changed meanwhile"):
        files.write("ada", "SOUL.md", "three", expected=seen.digest)


def add_line(line: str, text: str) -> str:
    return f"{text}{line}\n"


def test_writers_at_the_same_time_lose_nothing(files: AgentFiles) -> None:
    path, start = log_of(date(2026, 2, 28)), threading.Barrier(4)

    def note(writer: int) -> None:
        start.wait(5)
        for number in range(10):
            files.change("ada", path, partial(add_line, f"{writer}.{number}"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(note, range(4)))

    found = files.read("ada", path)
    assert found is not None
    lines = found.text.splitlines()
    assert sorted(lines) == sorted(f"{w}.{n}" for w in range(4) for n in range(10))


@pytest.fixture(params=["agents", "agents/ada", "agents/ada/memory"])
def folder(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_link_is_never_followed(files: AgentFiles, tmp_path: Path, folder: str) -> None:
    outside = tmp_path / "outside"
    for path in ("ada/memory/2026-02-28.md", "memory/2026-02-28.md", "2026-02-28.md"):
        (outside / path).parent.mkdir(parents=True, exist_ok=True)
        (outside / path).write_text("not yours")
    link = tmp_path / folder
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside, target_is_directory=True)

    for call in (
        lambda: files.read("ada", LOG),
        lambda: files.write("ada", LOG, "mine"),
        lambda: files.delete("ada", LOG),
    ):
        assert is_refused(call)

    assert [each.read_text() for each in sorted(outside.rglob("*.md"))] == ["not yours"] * 3
    assert files.list_files("ada") == []


def test_a_linked_or_odd_file_is_refused(files: AgentFiles, tmp_path: Path) -> None:
    files.write("ada", "TOOLS.md", "x")
    home = tmp_path / "agents" / "ada"
    (tmp_path / "secret").write_text("not yours")
    (home / "SOUL.md").symlink_to(tmp_path / "secret")
    (home / "AGENTS.md").mkdir()
    os.mkfifo(home / "MEMORY.md")

    for path in ("SOUL.md", "AGENTS.md", "MEMORY.md"):
        assert is_refused(lambda path=path: files.read("ada", path))
        assert is_refused(lambda path=path: files.write("ada", path, "mine"))

    assert (tmp_path / "secret").read_text() == "not yours"


@pytest.fixture
def swap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: str) -> Iterator[Path]:
    """Exchange a folder for a link when the new text is on the disk but not yet in its place."""
    outside, real = tmp_path / "outside", os.fsync
    outside.mkdir()

    def fsync(file: int) -> None:
        real(file)
        victim = tmp_path / folder
        if not victim.is_symlink():
            victim.rename(tmp_path / "moved")
            victim.symlink_to(outside, target_is_directory=True)

    monkeypatch.setattr(os, "fsync", fsync)
    yield outside
    monkeypatch.undo()


def test_a_folder_swapped_for_a_link_in_mid_write_leads_nothing_astray(
    files: AgentFiles, swap: Path
) -> None:
    with pytest.raises(FileRefused, match="exchanged meanwhile"):
        files.write("ada", LOG, "mine")

    assert list(swap.rglob("*")) == []


def test_a_crash_in_mid_write_leaves_the_old_text(
    files: AgentFiles, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files.write("ada", "SOUL.md", "old")

    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(os, "replace", crash)
        with pytest.raises(KeyboardInterrupt):
            files.write("ada", "SOUL.md", "new")

    found = files.read("ada", "SOUL.md")
    assert found is not None
    assert found.text == "old"
    files.write("ada", "SOUL.md", "newer")
    assert written(tmp_path) == ["agents/ada/SOUL.md"]
