"""The first whole story: somebody says something, an agent answers, the place shows it."""

from __future__ import annotations

from pathlib import Path

from tests.support.bridge import BridgeProcess
from tests.support.platform import Platform


def test_a_signed_event_leads_to_one_answer_in_the_place(tmp_path: Path) -> None:
    with Platform() as platform, BridgeProcess(tmp_path, platform) as bridge:
        assert bridge.say("t1", "say hello there") == 200

        platform.wait(lambda posts: any(p.content["state"] == "done" for p in posts))

        (post,) = platform.turns()
        assert post.content["text"] == "hello there"
        assert post.target == "web:t1:demo"
