"""Two conversations of one agent: neither reads the other, and neither frees any from asking."""

from __future__ import annotations

from tests.agents.rig import Rig, told


async def test_no_session_reads_the_history_of_another(rig: Rig) -> None:
    """Attack 4."""
    first = await rig.open()
    await told(first.session, "say the password is xyzzy-4711")
    await first.session.close()

    second = await rig.open(number=2)
    look = f"grep -rsl xyzzy-47[1]1 {rig.folder} ~ > found.txt; touch looked.txt"
    await told(second.session, f'run sh -c "{look}"', "allow_once")

    workspace = rig.workspace.with_name(f"2-{rig.kit.name}")
    assert (workspace / "looked.txt").exists()
    assert (workspace / "found.txt").read_text() == ""


async def test_settings_that_an_allowed_command_writes_free_nobody_from_asking(rig: Rig) -> None:
    """Attack 5: not this conversation, nor the same one after a restart, nor another one."""
    path, content = rig.kit.frees
    (rig.workspace / "planted").write_text(content)
    opened = await rig.open()
    await told(
        opened.session, f"run cp planted ../../session-homes/1-{rig.kit.name}/{path}", "allow_once"
    )

    at_once = await told(opened.session, "run touch at-once.txt")
    opened = await rig.reopen(opened, "new")
    restarted = await told(opened.session, "run touch restarted.txt")
    other = await rig.open(number=2)
    elsewhere = await told(other.session, "run touch elsewhere.txt")

    assert [len(each.asked) for each in (at_once, restarted, elsewhere)] == [1, 1, 1]
    assert list(rig.workspace.parent.glob("*/*.txt")) == []
