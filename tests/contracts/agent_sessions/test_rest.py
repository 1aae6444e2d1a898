"""What an agent's commands leave ends with the turn, and the agent itself goes on working."""

from __future__ import annotations

import os

from tests.agents.rig import Rig, told

SECONDS = f"1000{os.getpid()}"
"""By this number the process is known; another worker has another one."""
LEFT = f"run sh -c '(setsid sleep {SECONDS} > /dev/null 2>&1 &); touch left.txt'"


async def test_a_command_leaves_nothing_and_later_turns_work_in_the_same_process(rig: Rig) -> None:
    opened = await rig.open()
    await told(opened.session, LEFT, "allow_once")
    assert (rig.workspace / "left.txt").exists()
    assert not any(SECONDS.encode() in command for command in rig.commands())
    (first, *_) = kept = rig.processes()

    heard = await told(opened.session, "run touch second.txt", "allow_once")
    after = await told(opened.session, "say still here")

    assert first in rig.processes(), kept
    assert heard.end.stop_reason == "end_turn"
    assert (rig.workspace / "second.txt").exists()
    assert after.text.endswith("still here")
