"""Joins purging and forgetting in one bridge; texts that were purged count as secrets there."""

from __future__ import annotations

from typing_extensions import override

from app.core.runtime import Runtime
from app.features.erasing.forgetting import Forgetting
from app.features.erasing.purging import Purging
from app.features.erasing.store.people import PersonStore
from app.features.erasing.store.purges import PurgeStore
from app.features.part import Part


class Erasing(Part):
    """What one bridge erases on demand."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        purges = runtime.stores.open(PurgeStore)
        runtime.vault.register(*purges.texts())
        self.purging = Purging(runtime, purges)
        self.forgetting = Forgetting(runtime, purges, runtime.stores.open(PersonStore))

    @override
    def start(self) -> None:
        self.purging.start()
        self.forgetting.start()

    @override
    async def close(self) -> None:
        await self.purging.close()
        await self.forgetting.close()
