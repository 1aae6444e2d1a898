"""A DATA_DIR of the release before, in which all conversations of an agent shared one home."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.observe import Observed, demo
from tests.support.platform import Platform


def as_before(bridge: Observed) -> None:
    """Lay DATA_DIR out as the release before did."""
    shared = bridge.data_dir / "homes" / "demo" / ".agent-bridge-demo"
    shared.mkdir(parents=True)
    for history in bridge.data_dir.glob("session-homes/*/.agent-bridge-demo/*.jsonl"):
        history.rename(shared / history.name)
    shutil.rmtree(bridge.data_dir / "session-homes")


def test_a_conversation_of_the_release_before_comes_back_alone(tmp_path: Path) -> None:
    agents = {"demo": demo(driver="demo")}
    with Platform() as platform, Observed(tmp_path, platform, agents=agents) as bridge:
        bridge.ask("mine", "say the colour is green")
        bridge.ask("another", "say the colour is red")
        bridge.stop()
        as_before(bridge)
        bridge.start()

        seen = bridge.ask("mine", "recall")

        assert "the colour is green" in seen["text"]
        assert seen["note"] == ""
        home = bridge.data_dir / "session-homes" / f"{bridge.session('mine')}-demo"
        (history,) = home.glob(".agent-bridge-demo/*.jsonl")
        assert "red" not in history.read_text()
