"""What GitHub publishes about the calls that the bridge makes: paths, and the shapes of bodies.

Run as `python -m tests.support.github_openapi SPEC` it writes the golden file anew.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden" / "github"
WORDS = {"description", "example", "examples", "title", "x-github"}


def golden() -> dict[str, Any]:
    """Read the calls that the bridge makes, each with the shape of its body."""
    found: dict[str, Any] = json.loads((GOLDEN / "requests.json").read_text())
    return found


def operation(method: str, path: str, known: dict[str, Any]) -> str | None:
    """Find the published name of a call."""
    for name in known:
        published, template = name.split(" ")
        pattern = re.sub(r"\{\w+\}", r"[^/]+", template)
        if published == method and re.fullmatch(pattern, path):
            return name
    return None


def shapes(spec: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Cut out of the specification what it says about the bodies of some calls."""
    found: dict[str, Any] = {}
    for name in names:
        method, path = name.split(" ")
        published = spec["paths"][path][method.lower()]
        body = published.get("requestBody", {}).get("content", {}).get("application/json", {})
        found[name] = _whole(body["schema"], spec) if body else None
    return found


def _whole(
    value: Any, spec: dict[str, Any], *, names: bool = False, condition: bool = False
) -> Any:
    """Resolve references, leave out words, and allow no field that is not listed.

    A condition lists some fields of what it is a condition of.
    """
    if isinstance(value, list):
        return [_whole(each, spec, condition=condition) for each in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        target: Any = spec
        for part in value["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return _whole(target, spec)
    kept = {
        key: _whole(
            each,
            spec,
            names=key == "properties",
            condition="properties" in value and key in {"anyOf", "oneOf"},
        )
        for key, each in value.items()
        if names or key not in WORDS
    }
    is_closed = "properties" in kept and not (names or condition)
    return kept | {"additionalProperties": False} if is_closed else kept


if __name__ == "__main__":
    written = shapes(json.loads(Path(sys.argv[1]).read_text()), list(golden()))
    (GOLDEN / "requests.json").write_text(json.dumps(written, indent=1, sort_keys=True) + "\n")
