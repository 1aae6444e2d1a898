"""Reads where the bucket is that the bridges of several machines share."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pydantic import SecretStr

from app.config.fields import is_plain_and_remote
from app.config.settings import Settings
from app.errors import ConfigurationError

_ADDRESS = re.compile(r"s3://(?P<name>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(?P<prefix>[^?#]*))?")


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket on a server that speaks S3."""

    name: str
    prefix: str
    """What every name in it begins with; empty, or ends with a slash."""
    endpoint: str | None
    region: str | None
    key_id: str | None
    """Without a key, credentials come from the machine: its role, or its files."""
    secret: SecretStr | None = field(repr=False)


def read_bucket(settings: Settings) -> Bucket | None:
    """Return the bucket that is set, if one is.

    Raises:
        ConfigurationError: it cannot be used as it is set.
    """
    if settings.shared_bucket is None:
        return None
    found = _ADDRESS.fullmatch(settings.shared_bucket)
    if found is None:
        raise ConfigurationError(
            "SHARED_BUCKET",
            "is not an address of a bucket",
            "Write s3://bucket or s3://bucket/prefix.",
        )
    if settings.bridge_secret_key is None:
        raise ConfigurationError(
            "SHARED_BUCKET",
            "needs BRIDGE_SECRET_KEY: what is in it is encrypted with that key, on every machine",
            "Set BRIDGE_SECRET_KEY to one long random string, the same on every machine.",
        )
    if (settings.s3_access_key_id is None) != (settings.s3_secret_access_key is None):
        raise ConfigurationError(
            "S3_ACCESS_KEY_ID",
            "is set without S3_SECRET_ACCESS_KEY, or the other way round",
            "Set both, or none to use the credentials of the machine.",
        )
    endpoint = settings.s3_endpoint_url
    if endpoint is not None and is_plain_and_remote(endpoint) and not settings.allow_plain_http:
        raise ConfigurationError(
            "S3_ENDPOINT_URL",
            "uses plain http to another machine, so others could read the key on the network",
            "Write an https address, or set ALLOW_PLAIN_HTTP=true if the network is private.",
        )
    prefix = (found["prefix"] or "").strip("/")
    return Bucket(
        found["name"],
        f"{prefix}/" if prefix else "",
        endpoint,
        settings.s3_region,
        settings.s3_access_key_id,
        settings.s3_secret_access_key,
    )
