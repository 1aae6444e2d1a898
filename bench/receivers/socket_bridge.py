"""The bridge's own Slack adapter on the bridge's own store: kept first, acknowledged then."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

import uvloop
from pydantic import SecretStr

from app.clock import SystemClock
from app.config.process import Sealer
from app.errors import BridgeError
from app.services.slack.adapter import SlackAdapter, SlackApp
from app.services.slack.missed import Threads
from app.services.slack.people import Colleagues, Seal
from app.store.database import Database, sqlite_url
from app.store.guarding import Guard, put_on_guard
from app.store.stores import Stores
from app.vault import Vault
from bench.machine import LISTENING, LOOK_SECONDS, SERVER_CORE, pin

KEY = "the secret key of the bench's bridge"


async def listen(port: int, folder: Path) -> None:
    """Keep everything, for as long as there is a server to listen to."""
    clock = SystemClock()
    database = Database(sqlite_url(folder))
    put_on_guard(database.engine.dialect, Guard(Vault([KEY]), lambda: Sealer(SecretStr(KEY))))
    database.open()
    stores = Stores.on(database, clock.now)

    async def nothing(*_: float) -> tuple[()]:
        return ()

    adapter = SlackAdapter(
        SlackApp("demo", "xoxb-1", "xapp-1", base_url=f"http://127.0.0.1:{port}/api/"),
        colleagues=Colleagues(["demo"]),
        seal=Seal(KEY),
        threads=Threads(nothing, nothing),
        uploads=folder,
        clock=clock,
    )
    while True:
        try:
            await adapter.listen(stores.deliveries.add)
        except BridgeError:
            await asyncio.sleep(LOOK_SECONDS)  # it is not there yet


if __name__ == "__main__":
    pin(SERVER_CORE)
    logging.disable()
    print(LISTENING, flush=True)
    uvloop.run(listen(int(sys.argv[1]), Path(sys.argv[2])))
