"""Lists every public name: what people and programs outside rely on, and what must not change.

Run as `python -m tests.support.public_names`; it writes the golden file that a test compares. The
product is asked as users ask it, by its command and over HTTP, so that no module of it but the
command line is named here and the list outlives a move of the code.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import typer
from fastapi import APIRouter
from typer.main import get_command

from bench.machine import free_port

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "public_names.txt"
SOURCE = ROOT / "app"
COMMAND = Path(sys.executable).parent / "agent-bridge"
OPERATOR = {"Authorization": "Bearer admin-token-of-the-tests"}
SECONDS = 60.0
LOOK_SECONDS = 0.1
METHODS = ("get", "post", "put", "patch", "delete")
DEEPEST = 6
"""How far fields of fields are listed: a few shapes hold themselves."""


def render() -> str:
    """Render all names, by kind."""
    with tempfile.TemporaryDirectory(prefix="names-") as folder:
        home = Path(folder)
        asked = ask_bridge(home)
        sections: dict[str, Iterable[str]] = {
            "HTTP: `>` is what it takes, `<` what it answers": api(asked["openapi"]),
            "metrics": metrics(asked["metrics"]),
            "in DATA_DIR after the start": asked["files"],
            "settings": settings(),
            "keys of an agent in AGENTS_JSON": keys(
                home, AGENTS_JSON='{"a": {"command": "b", %s}}'
            ),
            "keys of its limits": keys(home, AGENTS_JSON='{"a": {"command": "b", "limits": {%s}}}'),
            "keys of a repository in REPOSITORIES_JSON": keys(
                home, REPOSITORIES_JSON='{"a/b": {%s}}'
            ),
            "commands": commands(),
            "tools of agents": tools(),
            "console scripts": scripts(),
            "entry-point groups": entry_point_groups(),
        }
        return "\n".join(
            "\n".join([f"# {title}", "", *lines, ""]) for title, lines in sections.items()
        )


def ask_bridge(home: Path) -> dict[str, Any]:
    """Start a bridge and ask it; one that has every service that takes webhooks."""
    port = free_port()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "AGENT_BRIDGE_ENV_FILE": os.devnull,
        "DATA_DIR": str(home / "data"),
        "PORT": str(port),
        "BRIDGE_BASE_URL": f"http://127.0.0.1:{port}",
        "BRIDGE_ADMIN_TOKEN": OPERATOR["Authorization"].removeprefix("Bearer "),
        "AGENTS_JSON": json.dumps({"demo": {"command": "no-such-agent", "sandbox": "none"}}),
        "LINEAR_WEBHOOK_SECRET": "secret-of-the-webhook-of-the-tests",
        "LINEAR_ACCESS_TOKEN": "token-of-the-tests",
        "LINEAR_API_URL": "http://127.0.0.1:9/graphql",
    }
    process = get_context("spawn").Process(target=_serve, args=(environment,), daemon=True)
    process.start()
    try:
        with httpx.Client(base_url=environment["BRIDGE_BASE_URL"], trust_env=False) as http:
            _wait_listening(http)
            return {
                "openapi": http.get("/openapi.json").raise_for_status().json(),
                "metrics": http.get("/metrics", headers=OPERATOR).raise_for_status().text,
                "files": sorted(
                    each.name for each in (home / "data").iterdir() if "-" not in each.name
                ),
            }
    finally:
        process.terminate()
        process.join(SECONDS)
        process.kill()


def _serve(environment: dict[str, str]) -> None:
    """Run `agent-bridge serve` with a schema that describes the page too."""
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["agent-bridge", "serve"]
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    make = APIRouter.__init__

    def make_shown(self: APIRouter, **named: Any) -> None:
        make(self, **{**named, "include_in_schema": True})

    with mock.patch.object(APIRouter, "__init__", make_shown):
        from app.cli import main

        main()


def _wait_listening(http: httpx.Client) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            http.get("/healthz").raise_for_status()
        except httpx.TransportError:
            assert time.monotonic() < deadline, "the bridge does not listen"
            time.sleep(LOOK_SECONDS)
        else:
            return


def api(schema: dict[str, Any]) -> Iterator[str]:
    """Yield each operation with its parameters, and the fields of its body and answer."""
    for path, operations in sorted(schema["paths"].items()):
        for method in METHODS:
            if method in operations:
                yield f"{method.upper()} {path}"
                yield from _operation(operations[method], schema)


def _operation(operation: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
    given = operation.get("parameters", [])
    for each in sorted(given, key=lambda each: (each["in"], each["name"])):
        must = " (required)" if each.get("required") and each["in"] != "path" else ""
        yield f"  {each['in']} {each['name']}: {_type(each['schema'])}{must}"
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"  > {kind}"
        yield from (f"  > {line}" for line in _fields(content.get("schema", {}), schema))
    for status, answer in sorted(operation["responses"].items()):
        if status.startswith("2"):
            contents = answer.get("content", {})
            yield f"  < {' '.join([status, *contents])}"
            for content in contents.values():
                yield from (f"  < {line}" for line in _fields(content.get("schema", {}), schema))


def _fields(
    shape: dict[str, Any], schema: dict[str, Any], above: str = "", depth: int = 0
) -> Iterator[str]:
    """Yield the fields of a shape, and those of the shapes in it."""
    if "$ref" in shape:
        shape = schema["components"]["schemas"][shape["$ref"].rpartition("/")[2]]
    for choice in (*shape.get("anyOf", ()), *shape.get("oneOf", ()), *shape.get("allOf", ())):
        yield from _fields(choice, schema, above, depth)
    if "items" in shape:
        yield from _fields(shape["items"], schema, f"{above}[]", depth)
    if depth < DEEPEST:
        for name, inner in sorted(shape.get("properties", {}).items()):
            where = f"{above}.{name}".removeprefix(".")
            must = " (required)" if name in shape.get("required", ()) else ""
            yield f"{where}: {_type(inner, schema)}{must}"
            yield from _fields(inner, schema, where, depth + 1)


def _type(shape: dict[str, Any], schema: dict[str, Any] | None = None) -> str:
    """Name a type: those of the bridge by what they are, since their names are not public."""
    if "$ref" in shape and schema is not None:
        shape = schema["components"]["schemas"][shape["$ref"].rpartition("/")[2]]
    choices = [*shape.get("anyOf", ()), *shape.get("oneOf", ())]
    if choices:
        return " | ".join(dict.fromkeys(_type(each, schema) for each in choices))
    if "const" in shape:
        return json.dumps(shape["const"])
    if "enum" in shape:
        return " | ".join(map(json.dumps, shape["enum"]))
    return str(shape.get("type", "any"))


def metrics(text: str) -> list[str]:
    """List the series with their types and labels; the values of labels are not names."""
    labels: dict[str, set[str]] = {}
    for name, given in re.findall(r"^(\w+)(?:\{(.*)\})? ", text, re.MULTILINE):
        labels.setdefault(name, set()).update(re.findall(r"(\w+)=\"", given))
    types = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    return [
        " ".join([kind, name, *sorted(labels.get(name) or labels.get(f"{name}_bucket") or [])])
        for name, kind in sorted(types)
        if not name.endswith("_created")
    ]


def settings() -> list[str]:
    """List the settings: .env.example has all of them, which a test compares with the code."""
    example = (ROOT / ".env.example").read_text()
    return sorted(re.findall(r"^#([A-Z][A-Z0-9_]*)=", example, re.MULTILINE))


def keys(home: Path, **setting: str) -> list[str]:
    """List the keys that a setting takes, as the refusal of another one says them."""
    ((name, value),) = setting.items()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "AGENT_BRIDGE_ENV_FILE": os.devnull,
        name: value % '"no_such_key": 1',
    }
    told = subprocess.run(
        [COMMAND, "doctor"], env=environment, cwd=home, capture_output=True, text=True, timeout=60
    )
    found = re.search(r"The keys are (.+)\.$", told.stdout, re.MULTILINE)
    assert found is not None, told.stdout
    return sorted(found[1].split(", "))


def commands() -> list[str]:
    """List the commands with their arguments and options."""
    from app.cli import main

    found: list[typer.Typer] = []
    mask = os.umask(0)
    try:
        with mock.patch.object(typer.Typer, "__call__", lambda self: found.append(self)):
            main()
    finally:
        os.umask(mask)
    return sorted(_commands(get_command(found[0]), "agent-bridge"))


def _commands(command: Any, name: str) -> Iterator[str]:
    command = command.load() if hasattr(command, "load") else command  # imported when it is used
    words = [
        f"<{each.name}>" if each.param_type_name == "argument" else "/".join(each.opts)
        for each in command.params
        if not getattr(each, "hidden", False)
    ]
    off = [word for each in command.params for word in getattr(each, "secondary_opts", ())]
    yield " ".join([name, *words, *off])
    for inner in getattr(command, "commands", {}).values():
        yield from _commands(inner, f"{name} {inner.name}")


def tools() -> list[str]:
    """List the tools that the bridge gives to agents."""
    named = (
        call.args[0].value
        for path in SOURCE.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call)
        and ast.unparse(call.func) == "Tool"
        and call.args
        and isinstance(call.args[0], ast.Constant)
    )
    return sorted(map(str, named))


def scripts() -> list[str]:
    """List the programs that an installation has."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return sorted(project["scripts"])


def entry_point_groups() -> list[str]:
    """List the groups by which packages plug in."""
    text = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    return sorted(set(re.findall(r"^GROUP\b.* = \"(agent_bridge\.\w+)\"$", text, re.MULTILINE)))


if __name__ == "__main__":
    GOLDEN.write_text(render())
