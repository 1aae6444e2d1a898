"""A server on loopback that speaks S3, with one bucket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import boto3
from moto.server import ThreadedMotoServer

KEY = {"aws_access_key_id": "bucket-key-id", "aws_secret_access_key": "bucket-secret-0123456789"}


@dataclass(frozen=True, slots=True)
class Server:
    """The server, seen by the one who owns it."""

    url: str
    client: Any
    bucket: str

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a bridge that uses the bucket."""
        return {
            "SHARED_BUCKET": f"s3://{self.bucket}/team",
            "S3_ENDPOINT_URL": self.url,
            "S3_REGION": "us-east-1",
            "S3_ACCESS_KEY_ID": KEY["aws_access_key_id"],
            "S3_SECRET_ACCESS_KEY": KEY["aws_secret_access_key"],
        }

    def content(self) -> dict[str, bytes]:
        """Read everything that is in the bucket."""
        listed = self.client.list_objects_v2(Bucket=self.bucket).get("Contents", ())
        return {each["Key"]: self._read(each["Key"]) for each in listed}

    def _read(self, key: str) -> bytes:
        found: bytes = self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return found


@contextmanager
def serve_bucket() -> Iterator[Server]:
    """Run the server."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    client = boto3.client("s3", endpoint_url=url, region_name="us-east-1", **KEY)
    try:
        # All servers of a process have the same buckets.
        client.create_bucket(Bucket=(bucket := f"work-{uuid4().hex}"))
        yield Server(url, client, bucket)
    finally:
        client.close()
        server.stop()
