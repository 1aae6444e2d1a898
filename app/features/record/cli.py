"""`audit`: lists the record, exports it, and checks an export without a bridge."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import ExitStack
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, BinaryIO, Final

import typer
from typer import Argument, Option

from app.errors import Conflict
from app.features.record import wording
from app.model.record import verify as check
from app.terminal.framing import (
    Json,
    add_group,
    commands,
    examples,
    say,
    show_json,
    show_list,
    when,
)

MOST: Final = 500
"""The most rows that are listed at once; the export has all."""

COMMANDS = commands()
audit = add_group(COMMANDS, "audit", "See, export and check the record of what was done.")


@audit.command(
    "list",
    epilog=examples(
        "audit list",
        "audit list --commit 1f3a9c2",
        "audit list --pull https://github.com/acme/widget/pull/7",
        "audit list --person Ann --kind push",
    ),
)
def list_rows(
    *,
    commit: Annotated[
        str | None, Option(metavar="SHA", help="All of the turn that pushed this commit.")
    ] = None,
    pull: Annotated[
        str | None, Option(metavar="URL", help="All of the turns of this pull request.")
    ] = None,
    turn: Annotated[int | None, Option(metavar="N", help="All of this turn.")] = None,
    person: Annotated[
        str | None, Option(metavar="NAME", help="What this person asked for or decided.")
    ] = None,
    agent: Annotated[str | None, Option(help="Only rows of this agent.")] = None,
    kind: Annotated[str | None, Option(help="Only rows of this kind, such as push.")] = None,
    limit: Annotated[int, Option(min=1, max=MOST, help="At most this many, the newest.")] = 100,
    as_json: Json = False,
) -> None:
    """List who asked, who allowed, and what was done; the oldest first."""
    from app.features.record.web import RecordRowOut  # noqa: PLC0415 - 0.4 s
    from app.terminal.api import Api  # noqa: PLC0415 - 0.4 s

    query = {"commit": commit, "pull": pull, "turn": turn, "person": person}
    query |= {"agent": agent, "kind": kind, "limit": limit}
    found = Api().items(RecordRowOut, "/record", **query)
    show_list(
        found[::-1],
        ("row", "at", "kind", "outcome", "agent", "asked by", "decided by", "what", "ref"),
        lambda each: (
            *(each.number, when(each.at), each.kind, each.outcome, _shown(each.agent)),
            *(_shown(each.asked_by), _decider(each.decided_by, each.rule)),
            *(_shown(each.what), _shown(each.ref)),
        ),
        as_json=as_json,
        nothing="Nothing is recorded of that.",
    )


def _shown(text: str | None) -> str:
    return "erased" if text is None else text


def _decider(person: str | None, rule: str | None) -> str:
    return ", ".join(filter(None, (_shown(person), _shown(rule))))


@audit.command(
    "export", epilog=examples("audit export record.jsonl", "audit export - | gzip > r.gz")
)
def export(
    target: Annotated[str, Argument(metavar="FILE", help="A new file, or - for stdout.")],
) -> None:
    """Write the whole record, for `audit verify` and for keeping elsewhere."""
    if target == "-":
        _download(sys.stdout.buffer)
        return
    try:
        with Path(target).open("xb") as file:
            _download(file)
    except FileExistsError:
        raise Conflict(f"{target} exists; name a new file") from None
    except OSError as error:
        raise Conflict(f"{target} cannot be written: {error.strerror}") from error
    say(f"Exported to {target}. Keep it where this bridge cannot write.")


@audit.command(
    "verify",
    epilog=examples("audit verify", "audit verify record.jsonl --after last-month.jsonl"),
)
def verify(
    export: Annotated[
        Path | None,
        Argument(metavar="FILE", help="An export; without one, the record of the running bridge."),
    ] = None,
    *,
    after: Annotated[
        Path | None,
        Option(metavar="FILE", help="An earlier export, with which it must begin."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check that no row was changed, removed, moved or inserted; an export needs no bridge."""
    with ExitStack() as files:
        lines = _fetch(files) if export is None else _open(files, export)
        found = check(lines, None if after is None else _open(files, after))
    if as_json:
        flaw = None if found.flaw is None else found.flaw.value
        show_json({"rows": found.rows, "head": found.head, "flaw": flaw, "row": found.number})
    else:
        sys.stdout.write(f"{wording.verdict(found)}\n")
    if found.flaw is not None:
        raise typer.Exit(1)


def _open(files: ExitStack, path: Path) -> Iterable[str]:
    """Open an export by its lines; bytes that are no text are no row either.

    Raises:
        Conflict: it cannot be read.
    """
    try:
        return files.enter_context(path.open(encoding="utf-8", errors="replace", newline="\n"))
    except OSError as error:
        raise Conflict(f"{path} cannot be read: {error.strerror}") from error


def _fetch(files: ExitStack) -> Iterable[str]:
    """Export the record of the running bridge into a file that is gone afterwards."""
    kept = files.enter_context(TemporaryFile())  # noqa: SIM115 - the stack closes it
    _download(kept)
    kept.seek(0)
    return TextIOWrapper(kept, encoding="utf-8", newline="\n")


def _download(to: BinaryIO) -> None:
    from app.terminal.api import Api  # noqa: PLC0415 - 0.4 s

    Api().download("/record/export", to)
