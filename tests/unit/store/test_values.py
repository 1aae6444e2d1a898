"""What the store writes as JSON and reads again, also what earlier releases wrote."""

from __future__ import annotations

import json

from app.model.posts import DelegatedLine, PostContent
from app.store.values import content_of, content_row

CONTENT = PostContent(
    kind="turn",
    state="working",
    delegated=(DelegatedLine("Codex", "look", "done", 3, words="Fine.", seconds=2.5),),
)


def test_agents_that_were_asked_are_read_as_they_were_written() -> None:
    assert content_of(json.loads(json.dumps(content_row(CONTENT)))) == CONTENT


def test_a_post_of_an_earlier_release_has_asked_no_agents() -> None:
    stored = content_row(CONTENT)
    del stored["delegated"]

    assert content_of(stored).delegated == ()
