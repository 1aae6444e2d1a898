"""No public name changes unseen: paths, settings, commands, metrics, keys, tools."""

from __future__ import annotations

import pytest

from tests.support import public_names


@pytest.mark.long
def test_public_names_are_those_of_the_golden_file() -> None:
    assert public_names.render() == public_names.GOLDEN.read_text(), (
        "run `python -m tests.support.public_names`, and say the change in CHANGELOG.md"
    )


def test_a_shape_that_holds_itself_is_listed_once_per_depth() -> None:
    node = {"type": "object", "properties": {"inner": {"$ref": "#/components/schemas/Node"}}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}}
    schema = {
        "paths": {"/tree": {"get": {"responses": {"200": body}}}},
        "components": {"schemas": {"Node": node}},
    }

    lines = list(public_names.api(schema))

    assert lines[:4] == [
        "GET /tree",
        "  < 200 application/json",
        "  < inner: object",
        "  < inner.inner: object",
    ]
    assert len(lines) == 2 + public_names.DEEPEST
