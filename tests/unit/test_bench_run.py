"""Runs every row of the bench once, as small as it goes: each must prove its own work."""

from __future__ import annotations

import pytest

from bench.__main__ import MEASUREMENTS, measured
from bench.figures import TINY, Gap
from tests.support.variants import quick


@pytest.mark.long
@pytest.mark.parametrize("name", quick(3, [*MEASUREMENTS]))
def test_every_row_of_the_bench_proves_its_work(name: str) -> None:
    results = list(measured(name, TINY))

    assert results
    assert [each for each in results if isinstance(each, Gap) and each.failed] == []
