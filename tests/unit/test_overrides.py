"""A misspelt override of an adapter fails: its default would stay without a word."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.core.adapters import Adapter

ROOT = Path(__file__).parents[2]
ADAPTERS = sorted(ROOT.glob("app/services/*/*adapter.py"))
ABILITIES = "|".join(name for name in vars(Adapter) if not name.startswith("_"))
OVERRIDE = re.compile(rf"^(    (?:async )?def )({ABILITIES})(?=\()", re.MULTILINE)
SECONDS = 300
"""mypy without a cache on a busy machine."""


@pytest.mark.slow
def test_every_misspelt_ability_of_every_adapter_is_refused(tmp_path: Path) -> None:
    for path in ADAPTERS:
        copy = tmp_path / f"misspelt_{path.parent.name}.py"
        copy.write_text(OVERRIDE.sub(r"\1\2s", path.read_text()))

    seen = mypy(*tmp_path.glob("*.py"))

    for path in ADAPTERS:
        for _, name in OVERRIDE.findall(path.read_text()):
            refusal = rf"misspelt_{path.parent.name}\.py:.*\"{name}s\" is marked as an override"
            assert re.search(refusal, seen), (path, name)


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda path: path.parent.name)
def test_an_adapter_with_a_misspelt_ability_cannot_be_imported(path: Path) -> None:
    source = path.read_text()
    for _, name in OVERRIDE.findall(source):
        misspelt = re.sub(
            rf"^(    (?:async )?def ){name}(?=\()", rf"\1{name}s", source, flags=re.MULTILINE
        )
        with pytest.raises(TypeError, match=rf"\.{name}s overrides nothing"):
            exec(compile(misspelt, str(path), "exec"), {"__name__": __name__})


def test_every_ability_is_one_that_some_adapter_has() -> None:
    used = {name for path in ADAPTERS for _, name in OVERRIDE.findall(path.read_text())}

    assert used == set(ABILITIES.split("|"))


def mypy(*paths: Path) -> str:
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", *map(str, paths)]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    return ran.stdout
