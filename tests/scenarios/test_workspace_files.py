"""The files of a workspace on the page: listed, read and downloaded, and never more than data."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.world import World

pytestmark = pytest.mark.one_database

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 32
ODD = b"\xff\xfe \x1b[31m<b>\n\"'?#%2e.txt"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Have an agent write into a scratch folder, and hostile things next to that."""
    with World(tmp_path_factory.mktemp("world")) as it:
        it.say("t1", "write b.txt hello\nwrite c.py def name(): return '<b>'")
        it.settle()
        folder = it.bridge.data_dir / "workspaces" / "1-demo"
        (folder / "deep" / ".git").mkdir(parents=True)
        (folder / "deep" / ".git" / "config").write_text("hidden words")
        (folder / "deep" / "logo.png").write_bytes(PNG)
        (folder / "page.html").write_text("<script>alert(1)</script>")
        (folder / "binary").write_bytes(b"a\0b")
        (folder / "long.log").write_bytes(b"line\n" * 300_000)
        (folder / "etc").symlink_to("/etc")
        (folder / "passwd").symlink_to("/etc/passwd")
        os.mkfifo(folder / "pipe")
        Path(os.fsdecode(os.fsencode(folder) + b"/" + ODD)).write_text("odd one")
        yield it


def get(world: World, path: str) -> httpx.Response:
    return world.bridge.http.get(f"/workspace/1{path}")


def test_a_scratch_folder_lists_its_files_with_size_and_download(world: World) -> None:
    page = get(world, "").text

    assert "<b>No repository.</b> 7 files are in a scratch folder." in page
    for name in ("b.txt", "deep/logo.png"):
        assert f'href="/workspace/1/files/{name}"' in page
        assert f'href="/workspace/1/raw/{name}" download' in page
    assert "5 bytes" in page
    assert "link, not followed" in page
    assert "hidden words" not in page


@pytest.mark.long
def test_a_file_is_read_with_numbers_and_colours(world: World) -> None:
    page = get(world, "/files/c.py").text

    assert '<span class="l" id="L1" data-n="1"><span><span class="hl-k">def</span>' in page
    assert "&lt;b&gt;" in page
    assert "This is a binary file." in get(world, "/files/binary").text
    assert "Only the beginning is shown." in get(world, "/files/long.log").text
    assert '<img src="/workspace/1/raw/deep/logo.png"' in get(world, "/files/deep/logo.png").text
    assert "hello" in get(world, "/files/b.txt").text


@pytest.mark.parametrize("name", ["page.html", "deep/logo.png", "long.log", "binary"])
def test_a_download_is_only_data(world: World, name: str) -> None:
    answer = get(world, f"/raw/{name}")

    folder = world.bridge.data_dir / "workspaces" / "1-demo"
    assert answer.content == (folder / name).read_bytes()
    picture = name.endswith(".png")
    assert answer.headers["content-type"] == (
        "image/png" if picture else "application/octet-stream"
    )
    how = "inline" if picture else "attachment"
    assert answer.headers["content-disposition"].startswith(f"{how}; filename*=UTF-8''")
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_name_that_is_no_text_is_shown_and_opened(world: World) -> None:
    address = "".join(f"%{byte:02X}" for byte in ODD)

    page = get(world, f"/files/{address}")

    assert "odd one" in page.text
    assert "\x1b" not in page.text
    assert "<b>\n" not in page.text
    assert get(world, f"/raw/{address}").text == "odd one"


@pytest.mark.parametrize(
    "path",
    [
        "passwd",
        "etc/passwd",
        "pipe",
        "%2e%2e/1-demo.files",
        "deep/%2e%2e/%2e%2e/x",
        "%2Fetc/passwd",
        "/etc/passwd",
        "deep/.git/config",
        "b.txt/x",
        "a%00b",
        "nothing",
    ],
)
@pytest.mark.parametrize("way", ["files", "raw"])
def test_nothing_else_is_reached(world: World, way: str, path: str) -> None:
    assert get(world, f"/{way}/{path}").status_code == 404


def test_strangers_see_no_files(world: World) -> None:
    for path in ("", "/files/b.txt", "/raw/b.txt", "/change?of=x&file=0"):
        answer = world.bridge.http.get(f"/workspace/1{path}", headers={"Authorization": ""})
        assert answer.status_code == 401


def test_the_message_box_is_offered_the_names_of_files(world: World) -> None:
    def names(part: str) -> list[str]:
        offered = world.bridge.http.get("/names/t/web/t1", params={"q": part}).json()
        return [item["name"] for item in offered]

    folder = world.bridge.data_dir / "workspaces" / "1-demo"
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "logo.js").touch()
    (folder / "my logo.txt").touch()

    assert names("logo") == ["deep/logo.png", "my logo.txt"]
    assert names("DEEP/") == ["deep/logo.png"]
    assert names("c.py") == ["c.py"]
    assert {"b.txt", "c.py", "deep/logo.png"} <= set(names(""))
    assert names("config") == names("passwd") == names("odd") == names("../") == []
    assert len(names("")) <= 12
    [spaced] = world.bridge.http.get("/names/t/web/t1", params={"q": "my logo"}).json()
    assert spaced["text"] == "`my logo.txt` "
    with httpx.Client(base_url=world.bridge.http.base_url, trust_env=False) as stranger:
        assert stranger.get("/names/t/web/t1").status_code in {303, 401, 403}
