"""The changes of a workspace: how much longer a very large change takes than a small one."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from app.store.database import FILE_NAME
from bench.bridge import AGENT, BridgeServer
from bench.figures import Gap, Row, Scale
from bench.page import View, open_window, prepare, shown_row
from bench.proof import prove_equal
from tests.support.chromium import MISSING

FILES = 300
LINES = 68
"""Of each file: 20,400 changed lines in all."""
GOAL = 3.0
"""All files are in the list; the lines of most come when one scrolls to them."""
FILE = '<article class="patch"'


def measure(scale: Scale, folder: Path) -> Iterator[Row | Gap]:
    """Measure the page of a large change against that of a small one."""
    bridge = prepare(folder / "bridge", 2)
    for session, files in ((1, 1), (2, FILES)):
        _change(bridge, session, folder / f"work-{session}", files)
    small = View("a small change", "/workspace/1", bridge, FILE, 1)
    large = View(
        f"change of {FILES * LINES:,} lines in {FILES} files", "/workspace/2", bridge, FILE, FILES
    )
    with bridge.server:
        bridge.wait_ready()
        for view in (small, large):
            view.fetch()
        with open_window((bridge,)) as page:
            if page is None:
                yield Gap("changes until Chromium shows them", MISSING, failed=False)
                return
            for _ in range(scale.rounds):
                for view in (small, large):
                    view.show(page)
                    counted = page.locator(".list > summary .plus").inner_text()
                    prove_equal(counted, f"+{LINES * view.times:,}", "lines that are counted")
        yield shown_row(large, small, GOAL)


def _change(bridge: BridgeServer, session: int, work: Path, files: int) -> None:
    """Have a session work in a folder in which so many files are new."""
    work.mkdir(parents=True)
    (bridge.data_dir / "workspaces" / f"{session}-{AGENT}").mkdir(parents=True)
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "First")):
        author = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
        subprocess.run(("git", *author, *words), cwd=work, check=True)
    for number in range(files):
        path = work / f"pkg{number % 9}" / f"module{number}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"value[{n}] = compute({n}, 'text')\n" for n in range(LINES)))
    with closing(sqlite3.connect(bridge.data_dir / FILE_NAME)) as database, database:
        database.execute(
            "update place set repository = ? where name = ?",
            (f"folder:{work}", f"thread-{session}"),
        )
