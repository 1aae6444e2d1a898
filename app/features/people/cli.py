"""`people` and `tokens`: who signs in with which role, and what their scripts use."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Annotated

from typer import Argument, Option

from app.errors import NotFound
from app.features.people.model import DAYS, MOST_DAYS, MadeToken, RightOut, TokenOut, UserOut
from app.model.people import Role
from app.server.rights import COMMANDS as COMMANDS_TABLE
from app.server.rights import TABLE
from app.terminal.api import Api
from app.terminal.framing import Json, add_group, commands, examples, show_list

COMMANDS = commands()
people = add_group(COMMANDS, "people", "See who signs in, and give them roles.")
tokens = add_group(COMMANDS, "tokens", "Make and revoke tokens for scripts.")

Who = Annotated[str, Argument(metavar="WHO", help="Their name or number; see `people list`.")]
GivenRole = Annotated[Role, Argument(metavar="ROLE", help="viewer, member or admin.")]


@people.command("list", epilog=examples("people list"))
def list_people(*, as_json: Json = False) -> None:
    """List everyone who signed in or was named."""
    show_list(
        Api().items(UserOut, "/users"),
        ("id", "name", "role", "last signed in"),
        lambda each: (
            each.id,
            each.name,
            "disabled" if each.disabled else each.role.value,
            _day(each.seen_at),
        ),
        as_json=as_json,
        nothing="Nobody has given a name yet.",
    )


@people.command("role", epilog=examples("people role Kim member"))
def give_role(who: Who, role: GivenRole) -> None:
    """Give someone another role."""
    found = _find(who)
    Api().send(UserOut, "PATCH", f"/users/{found.id}", json={"role": role})
    sys.stdout.write(f"{found.name} has the role {role.value}.\n")


@people.command("disable", epilog=examples("people disable Kim"))
def disable(who: Who) -> None:
    """Keep someone out; their log-ins and tokens count no more."""
    found = _find(who)
    Api().send(UserOut, "PATCH", f"/users/{found.id}", json={"disabled": True})
    sys.stdout.write(f"{found.name} is disabled.\n")


@people.command("enable", epilog=examples("people enable Kim"))
def enable(who: Who) -> None:
    """Let someone in again."""
    found = _find(who)
    Api().send(UserOut, "PATCH", f"/users/{found.id}", json={"disabled": False})
    sys.stdout.write(f"{found.name} is enabled.\n")


@people.command("roles", epilog=examples("people roles"))
def list_roles(*, as_json: Json = False) -> None:
    """List what each role may do: paths of the API and the page, and commands."""
    show_list(
        [
            RightOut(needs=needs, kind=kind, name=name)
            for kind, table in (("command", COMMANDS_TABLE), ("path", TABLE))
            for needs, names in table.items()
            for name in names
        ],
        ("needs", "", "name"),
        lambda each: (each.needs.value, each.kind, each.name),
        as_json=as_json,
    )


@tokens.command("list", epilog=examples("tokens list"))
def list_tokens(
    *,
    every: Annotated[
        bool, Option("--all", help="Also those that expired or were revoked.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List tokens, without their secrets."""
    found = Api().items(TokenOut, "/tokens")
    show_list(
        [each for each in found if every or each.state == "active"],
        ("id", "for", "person", "role", "until", "last used", "state"),
        lambda each: (
            *(each.id, each.name, each.person, each.role.value),
            *(_day(each.expires_at), _day(each.used_at), each.state),
        ),
        as_json=as_json,
        nothing="No tokens.",
    )


@tokens.command("add", epilog=examples('tokens add "nightly report" --as ci --role viewer'))
def add_token(
    name: Annotated[str, Argument(metavar="FOR", help="What it is for.")],
    *,
    person: Annotated[str, Option("--as", metavar="NAME", help="Whose it is.")],
    role: Annotated[
        Role | None, Option(help="The most that it may do: viewer, member or admin.")
    ] = None,
    days: Annotated[int, Option(min=1, max=MOST_DAYS, help="How long it lasts.")] = DAYS,
) -> None:
    """Make a token and print it; it is not shown again.

    Someone new with this name gets the role of the token, else that of an admin.
    """
    body = {"name": name, "as": person, "role": role, "days": days}
    made = Api().post(MadeToken, "/tokens", **body)
    sys.stdout.write(f"{made.token}\n")
    # Not on stdout: a pipe gets the token alone.
    sys.stderr.write(f"Token {made.id} of {made.person}, role {made.role.value}.\n")


@tokens.command("revoke", epilog=examples("tokens revoke 3"))
def revoke(
    token: Annotated[int, Argument(metavar="ID", min=1, help="Its number; see `tokens list`.")],
) -> None:
    """End a token at once."""
    Api().request("DELETE", f"/tokens/{token}")
    sys.stdout.write(f"Token {token} was revoked.\n")


def _find(who: str) -> UserOut:
    """Find someone by number or name.

    Raises:
        NotFound: there is no such person, or there are several.
    """
    everyone = Api().items(UserOut, "/users")
    found = [each for each in everyone if who == str(each.id)] or [
        each for each in everyone if each.name.casefold() == who.casefold()
    ]
    if len(found) != 1:
        raise NotFound("person", who)
    return found[0]


def _day(at: float | None) -> str:
    return "" if at is None else f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d}"
