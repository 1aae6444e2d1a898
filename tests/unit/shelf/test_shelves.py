"""Every shelf keeps files as they are; a sealed one shows nothing of them to its server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from app.config.bucket import Bucket
from app.config.sealing import Sealer
from app.model.ports import Shelf
from app.shelf.bucket import BucketShelf
from app.shelf.folder import FolderShelf
from app.shelf.sealed import SealedShelf
from tests.support.bucket import KEY, Server, serve_bucket

SEALER = Sealer(SecretStr("a key that only the bridges have"))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve_bucket() as running:
        yield running


def bucket_of(server: Server, prefix: str = "team/") -> BucketShelf:
    secret = SecretStr(KEY["aws_secret_access_key"])
    key_id = KEY["aws_access_key_id"]
    return BucketShelf(Bucket(server.bucket, prefix, server.url, "us-east-1", key_id, secret))


@pytest.fixture(params=["folder", "bucket", "sealed"])
def shelf(request: pytest.FixtureRequest, server: Server, tmp_path: Path) -> Shelf:
    """Each kind of shelf, empty."""
    own = bucket_of(server, f"{tmp_path.name}/")
    kinds: dict[str, Shelf] = {
        "folder": FolderShelf(tmp_path / "shelf"),
        "bucket": own,
        "sealed": SealedShelf(own, SEALER),
    }
    return kinds[request.param]


@pytest.mark.parametrize("size", [0, 10, 9 * 1024**2], ids=str)
async def test_what_is_put_is_got_listed_and_removed(
    shelf: Shelf, tmp_path: Path, size: int
) -> None:
    file, copy = tmp_path / "file", tmp_path / "copy"
    file.write_bytes(bytes(range(256)) * (size // 256) + b"x" * (size % 256))
    assert not await shelf.get("1-demo/a", copy)

    await shelf.put("1-demo/a", file)
    await shelf.put("1-demo-1/b", file)

    assert await shelf.names("1-demo") == ["1-demo/a"]
    assert await shelf.get("1-demo/a", copy)
    assert copy.read_bytes() == file.read_bytes()
    await shelf.remove("1-demo/a")
    await shelf.remove("1-demo/a")
    assert not await shelf.get("1-demo/a", copy)
    assert await shelf.names("1-demo-1") == ["1-demo-1/b"]


async def test_a_sealed_file_shows_nothing_and_cannot_be_changed(
    server: Server, tmp_path: Path
) -> None:
    shelf = SealedShelf(plain := bucket_of(server), SEALER)
    file, copy = tmp_path / "file", tmp_path / "copy"
    file.write_bytes(b"canary" * 1_000_000)
    await shelf.put("1-demo/a", file)
    (stored,) = (each for name, each in server.content().items() if name == "team/1-demo/a")
    assert b"canary" not in stored

    first = 4 + int.from_bytes(stored[:4])
    for changed in (stored[:first], stored[first:], stored[:-1], stored + stored, b""):
        file.write_bytes(changed)
        await plain.put("1-demo/a", file)
        with pytest.raises(OSError, match="damaged"):
            await shelf.get("1-demo/a", copy)
    file.write_bytes(stored)
    await plain.put("1-demo/b", file)
    with pytest.raises(OSError, match="BRIDGE_SECRET_KEY"):
        await shelf.get("1-demo/b", copy)


async def test_a_bucket_that_does_not_work_is_an_error_of_the_disk(
    server: Server, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    missing = BucketShelf(
        Bucket("missing", "", server.url, "us-east-1", "id", SecretStr("secret-of-the-bucket"))
    )
    with pytest.raises(OSError, match="the bucket does not work") as caught:
        await missing.put("a", tmp_path / "file")
    assert "secret-of-the-bucket" not in str(caught.value)
    with pytest.raises(OSError, match="the bucket does not work"):
        await missing.names("a")


async def test_all_that_belongs_to_a_session_is_removed_at_once(
    server: Server, tmp_path: Path
) -> None:
    shelf = bucket_of(server, "removal/")
    (tmp_path / "file").write_text("x")
    names = ["1-demo-1/state", "1-demo.home/packed", "12-demo.home/packed"]
    for name in names:
        await shelf.put(name, tmp_path / "file")

    shelf.remove_all(["1-"], ".home/")
    assert await shelf.names("1-demo.home") == []
    shelf.remove_all(["1-"], "/")

    assert [await shelf.names(name.partition("/")[0]) for name in names] == [[], [], names[2:]]


async def test_all_versions_of_what_is_removed_go(tmp_path: Path) -> None:
    with serve_bucket() as server:
        on = {"Status": "Enabled"}
        server.client.put_bucket_versioning(Bucket=server.bucket, VersioningConfiguration=on)
        shelf = bucket_of(server)
        for content in ("first", "second"):
            (tmp_path / "file").write_text(content)
            await shelf.put("1-demo/a", tmp_path / "file")
        await shelf.remove("1-demo/a")
        await shelf.put("2-demo/a", tmp_path / "file")

        shelf.remove_all(["1-"], "/")

        left = server.client.list_object_versions(Bucket=server.bucket)
        assert [each["Key"] for each in left["Versions"]] == ["team/2-demo/a"]
        assert "DeleteMarkers" not in left
