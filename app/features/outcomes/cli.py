"""`why`: tells what became of a message, and why nobody answered it."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Argument

from app.features.outcomes.model import WhyOut
from app.terminal.api import Api
from app.terminal.framing import Json, commands, examples, printable, show_json, show_table, when

COMMANDS = commands()


@COMMANDS.command(
    epilog=examples(
        "why https://acme.slack.com/archives/C0123/p1700000000000100",
        "why https://github.com/acme/app/issues/7#issuecomment-1234",
    )
)
def why(
    link_or_id: Annotated[str, Argument(help="The link that the platform copies, or an id.")],
    *,
    as_json: Json = False,
) -> None:
    """Tell what became of a message, and what to do about it."""
    found = Api().get(WhyOut, "/why", message=link_or_id)
    if as_json:
        show_json(found.model_dump())
        return
    typer.echo(printable(found.words))
    if found.steps:
        show_table(("when", "what"), [(when(step.at), step.what) for step in found.steps])
    if found.remedy:
        typer.echo(printable(found.remedy))
