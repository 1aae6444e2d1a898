"""Checks a PostgreSQL server before it is used, and says what is wrong with it."""

from __future__ import annotations

from typing import NoReturn

from sqlalchemy import Connection
from sqlalchemy.exc import DatabaseError

from app.errors import StoreUnavailable

OLDEST_VERSION = 13
"""The first version that tells by a 64-bit id whether a transaction was committed."""
SCHEMA_FAULTS = ("42P01", "42703", "42P07", "42701")
"""PostgreSQL's codes for a table or a column that is missing, or there already."""
_FACTS = """
select current_setting('server_version_num')::int / 10000 as version,
  current_setting('server_encoding') as encoding,
  current_schema() as schema, current_user as user, pg_is_in_recovery() as standby,
  coalesce(has_schema_privilege(current_schema(), 'create'), false) as allowed
"""


def check_server(connection: Connection) -> None:
    """Check a server's version, and what we may do in the schema.

    Raises:
        StoreUnavailable: it cannot be used; the remedy is said.
    """
    found = connection.exec_driver_sql(_FACTS).one()
    if found.version < OLDEST_VERSION:
        raise StoreUnavailable(
            f"the server is PostgreSQL {found.version}",
            f"Use PostgreSQL {OLDEST_VERSION} or later.",
        )
    if found.encoding != "UTF8":
        raise StoreUnavailable(
            f"the database has the encoding {found.encoding}",
            "Create one with `createdb --encoding=UTF8`.",
        )
    if found.schema is None:
        raise StoreUnavailable(
            "no schema of its search_path is there",
            "Create the schema, or correct `options` in DATABASE_URL.",
        )
    if found.standby:
        raise StoreUnavailable(
            "the server is a standby and takes no writes",
            "Name the primary server in DATABASE_URL.",
        )
    if not found.allowed:
        raise StoreUnavailable(
            f"the user {found.user!r} may not create tables in the schema {found.schema!r}",
            f'Run `grant usage, create on schema "{found.schema}" to "{found.user}"` there.',
        )


def refuse_server(error: DatabaseError) -> NoReturn:
    """Say why a server cannot be used.

    Raises:
        StoreUnavailable: always.
    """
    cause = " ".join(str(error.orig).split())
    if getattr(error.orig, "sqlstate", None) in SCHEMA_FAULTS:
        raise StoreUnavailable(
            f"its tables do not fit its version: {cause}",
            "Name an empty database in DATABASE_URL, and restore a backup with "
            "`agent-bridge restore`.",
        ) from error
    if "password" in cause:
        raise StoreUnavailable(
            cause, "Correct the user and the password in DATABASE_URL."
        ) from error
    if "does not exist" in cause:
        raise StoreUnavailable(
            cause, "Create the database and its user, or correct DATABASE_URL."
        ) from error
    if "permission denied" in cause:
        raise StoreUnavailable(
            cause, "Give the user of DATABASE_URL all rights on the tables."
        ) from error
    raise StoreUnavailable(
        cause, "Start the server, or correct the host and the port in DATABASE_URL."
    ) from error
