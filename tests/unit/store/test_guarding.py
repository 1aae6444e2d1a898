"""Raw deliveries: sealed in the file, as they arrived for whoever has the key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from app.config.process import Sealer
from app.model.inbound import Delivery
from app.store.database import FILE_NAME, Database, sqlite_url
from app.store.guarding import Guard, put_on_guard
from app.store.stores import Stores, reading
from app.vault import Vault

pytestmark = pytest.mark.anyio

SECRET = "correct-horse-battery-staple-7"
BODY = b'{"text": "ordinary words \xff\x00"}'
RAW = text("select body from delivery")
KEY, OTHER_KEY = SecretStr("k" * 40), SecretStr("j" * 40)


def guard(key: SecretStr = KEY) -> Guard:
    return Guard(Vault([SECRET]), lambda: Sealer(key))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(sqlite_url(tmp_path))
    put_on_guard(database.engine.dialect, guard())
    database.open()
    yield database
    database.close()


async def add(database: Database, body: bytes = BODY) -> None:
    await Stores.on(database, lambda: 0.0).deliveries.add(
        Delivery(
            adapter="web:demo",
            delivery_id="one",
            signature="of it",
            headers={"kind": "message"},
            body=body,
            received_at=1.0,
        )
    )


async def read(database: Database) -> Delivery:
    [found] = await Stores.on(database, lambda: 0.0).deliveries.pending("web:demo", 0)
    return found


async def store_as_earlier_versions_did(database: Database, body: bytes) -> None:
    await add(database)
    await database.writer.run(
        lambda connection: connection.exec_driver_sql("update delivery set body = ?", (body,))
    )


@pytest.mark.parametrize("body", [BODY, SECRET.encode(), b"sealed:", b"sealed\0", b""])
async def test_every_raw_delivery_is_sealed_and_comes_back_as_it_was(
    database: Database, body: bytes
) -> None:
    await add(database, body)

    found = await read(database)
    assert (found.body, found.headers, found.signature) == (body, {"kind": "message"}, "of it")
    [(stored,)] = await database.all(RAW)
    assert stored.startswith(b"sealed\0")


async def test_no_word_of_a_delivery_is_in_the_file(database: Database, tmp_path: Path) -> None:
    await add(database)
    database.close()

    assert b"ordinary words" not in (tmp_path / FILE_NAME).read_bytes()


@pytest.mark.parametrize("body", [BODY, b"no JSON at all"])
async def test_what_earlier_versions_stored_as_it_was_is_still_read(
    database: Database, body: bytes
) -> None:
    await store_as_earlier_versions_did(database, body)

    assert (await read(database)).body == body


async def test_what_earlier_versions_sealed_is_still_read(database: Database) -> None:
    await store_as_earlier_versions_did(database, guard().seal(BODY.decode("latin-1")).encode())

    assert (await read(database)).body == BODY


async def test_without_its_key_a_delivery_is_a_mask(database: Database, tmp_path: Path) -> None:
    await add(database)

    bodies = []
    for opener in (None, guard(OTHER_KEY), guard()):
        with reading(sqlite_url(tmp_path), opener) as stores:
            assert stores is not None
            [found] = await stores.deliveries.kept("web:demo", limit=1)
            bodies.append(found.body)

    assert bodies == [b"[secret]", b"[secret]", BODY]
