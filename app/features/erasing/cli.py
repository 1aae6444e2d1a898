"""`purge` and `forget`: have the running bridge erase, and say what it could not reach."""

from __future__ import annotations

import sys
from typing import Annotated, Final
from urllib.parse import quote

import httpx
import typer
from typer import Argument, Option

from app.config import Configuration
from app.errors import Conflict
from app.features.erasing.model import ErasedOut, PersonOut, Stays
from app.terminal.api import Api
from app.terminal.framing import (
    NotConfirmed,
    Yes,
    commands,
    confirm,
    examples,
    one_line,
    read_configuration,
)

ERASURE: Final = httpx.Timeout(3600.0, connect=2.0)
"""To purge a text, every file and every object of every repository is read."""

COMMANDS = commands()


@COMMANDS.command(epilog=examples("purge", "purge --yes < leaked.txt"))
def purge(
    *,
    discard: Annotated[
        bool, Option("--discard", help="Also delete work that is nowhere else.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Erase a text that leaked, wherever it was kept or posted.

    The text is read from a hidden prompt, or from stdin; it is never an argument.
    """
    at_terminal = sys.stdin.isatty()
    if not (at_terminal or yes):
        raise Conflict("there is no terminal to ask at; add --yes")
    typed = typer.prompt("Text", hide_input=True, err=True) if at_terminal else sys.stdin.read()
    purge_text(read_configuration(), typed.rstrip("\r\n"), discard=discard, yes=yes)


def purge_text(configuration: Configuration, text: str, *, discard: bool, yes: bool) -> None:
    """Purge a text, after a question, and one more about work that is nowhere else.

    Raises:
        BridgeError: the bridge cannot be reached, or refuses; or the person does.
    """
    if not text:
        raise Conflict("there is no text to purge; give it on stdin")
    confirm(
        f"Purge this text of {len(text)} characters from everything that the bridge keeps and has "
        "posted? Agents that know it are stopped. This cannot be undone.",
        yes=yes,
        otherwise="nothing was purged.",
    )
    api, asked = Api(configuration), {"text": text, "discard": discard}
    done = api.send(ErasedOut, "POST", "/purges", json=asked, timeout=ERASURE)
    _show(done)
    if any(each.why is Stays.UNSHIPPED for each in done.left) and not yes:
        confirm(
            "Delete that work too? It is nowhere else, and this cannot be undone.",
            otherwise="the work was kept.",
        )
        again = {"text": text, "discard": True}
        _show(api.send(ErasedOut, "POST", "/purges", json=again, timeout=ERASURE))


@COMMANDS.command(epilog=examples("forget Ann", "forget slack:U024BE7LH"))
def forget(
    who: Annotated[str, Argument(metavar="PERSON", help="SERVICE:ID, or a name to look for.")],
    *,
    yes: Yes = False,
) -> None:
    """Forget a person: what they said and decided, their name."""
    api = Api()
    service, colon, known = who.partition(":")
    if not colon:
        for each in api.items(PersonOut, "/people", q=who):
            words = f"{each.service}:{each.id}  {each.name}, {each.messages} messages"
            sys.stdout.write(f"{one_line(words)}\n")
        raise NotConfirmed("name the person as SERVICE:ID.")
    confirm(
        f"Forget {one_line(who)}? What they said and decided here goes, and agents that heard it "
        "start over. This cannot be undone.",
        yes=yes,
        otherwise="nothing was forgotten.",
    )
    path = f"/people/{quote(service, safe='')}/{quote(known, safe='')}"
    _show(api.send(ErasedOut, "DELETE", path, timeout=ERASURE))


def _show(done: ErasedOut) -> None:
    parts = [f"{done.rows} rows", f"{done.files} files", f"{done.posts} posts"]
    parts += [f"{done.clones} clones"] * bool(done.clones)
    sys.stderr.write(f"Erased from {', '.join(parts)}.\n")
    for each in done.left:
        where = f": {each.where}" if each.where else ""
        sys.stderr.write(f"! {one_line(f'{each.words}{where}')}\n")
