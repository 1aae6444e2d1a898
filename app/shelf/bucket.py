"""Stores files in a bucket on a server that speaks S3.

Every failure of the server or the network is an OSError, as with a folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from app.config.bucket import Bucket
from app.errors import ConfigurationError

T = TypeVar("T")

_CONNECT_SECONDS = 10
_READ_SECONDS = 60
_UNVERSIONED = frozenset({400, 403, 404, 405, 501})
"""How servers refuse to list versions: they have none, or these credentials may not see them."""
_TRIES = 4
"""A server may ask to slow down."""


class BucketShelf:
    """Files in a bucket, below a prefix."""

    def __init__(self, bucket: Bucket) -> None:
        """Use a bucket.

        Raises:
            ConfigurationError: the library for it is not installed.
        """
        self._client = _connect(bucket)
        self._bucket = bucket

    async def put(self, name: str, file: Path) -> None:
        """Store a copy of a file."""
        await self._run(self._put, name, file)

    async def get(self, name: str, into: Path) -> bool:
        """Copy a stored file to a path; False if there is none."""
        return await self._run(self._get, name, into)

    async def names(self, folder: str) -> Sequence[str]:
        """List the stored files below a folder, by their whole names."""
        return await self._run(self._names, f"{folder}/")

    async def remove(self, name: str) -> None:
        """Remove a stored file, if there is one."""
        await self._run(self._remove, name)

    def remove_all(self, beginnings: Sequence[str], part: str) -> None:
        """Remove the stored files whose names begin so and have this part; call it in a thread.

        Where the bucket keeps versions, all of them go.

        Raises:
            OSError: one cannot be removed.
        """
        with _translate_errors():
            for beginning in beginnings:
                for name, version in self._versions(beginning):
                    if part in name:
                        self._remove(name, **version)

    async def _run(self, work: Callable[..., T], *arguments: object) -> T:
        def run() -> T:
            with _translate_errors():
                return work(*arguments)

        return await asyncio.to_thread(run)

    def _put(self, name: str, file: Path) -> None:
        self._client.upload_file(str(file), self._bucket.name, self._key(name))

    def _get(self, name: str, into: Path) -> bool:
        from botocore.exceptions import ClientError  # noqa: PLC0415 - takes a third of a second

        try:
            self._client.download_file(self._bucket.name, self._key(name), str(into))
        except ClientError as error:
            if error.response["Error"]["Code"] in {"404", "NoSuchKey"}:
                return False
            raise
        return True

    def _names(self, beginning: str) -> list[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket.name, Prefix=self._key(beginning)
        )
        keys = (each["Key"] for page in pages for each in page.get("Contents", ()))
        return sorted(key.removeprefix(self._bucket.prefix) for key in keys)

    def _versions(self, beginning: str) -> list[tuple[str, dict[str, str]]]:
        """List every version of the stored files, by whole names."""
        from botocore.exceptions import ClientError  # noqa: PLC0415 - takes a third of a second

        pages = self._client.get_paginator("list_object_versions").paginate(
            Bucket=self._bucket.name, Prefix=self._key(beginning)
        )
        try:
            found = [
                each
                for page in pages
                for kind in ("Versions", "DeleteMarkers")
                for each in page.get(kind, ())
            ]
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] not in _UNVERSIONED:
                raise
            return [(name, {}) for name in self._names(beginning)]
        prefix = self._bucket.prefix
        return [
            (each["Key"].removeprefix(prefix), {"VersionId": each["VersionId"]}) for each in found
        ]

    def _remove(self, name: str, **version: str) -> None:
        self._client.delete_object(Bucket=self._bucket.name, Key=self._key(name), **version)

    def _key(self, name: str) -> str:
        return f"{self._bucket.prefix}{name}"


def _connect(bucket: Bucket) -> Any:
    """Make the client; it connects when it is used first."""
    try:
        import boto3  # noqa: PLC0415 - an extra, and it takes a third of a second
        from botocore.config import Config  # noqa: PLC0415
    except ImportError:
        raise ConfigurationError(
            "SHARED_BUCKET",
            "needs the library boto3, which is not installed",
            "Run pip install 'agent-bridge[s3]', or set SHARED_DIR instead.",
        ) from None
    secret = bucket.secret
    return boto3.client(
        "s3",
        endpoint_url=bucket.endpoint,
        region_name=bucket.region,
        aws_access_key_id=bucket.key_id,
        aws_secret_access_key=None if secret is None else secret.get_secret_value(),
        config=Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"total_max_attempts": _TRIES, "mode": "standard"},
            # Not every server knows the newer checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


@contextmanager
def _translate_errors() -> Iterator[None]:
    from boto3.exceptions import Boto3Error  # noqa: PLC0415 - takes a third of a second
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    try:
        yield
    except (Boto3Error, BotoCoreError, ClientError) as error:
        raise OSError(f"the bucket does not work: {error}") from error
