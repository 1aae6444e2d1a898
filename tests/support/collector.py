"""An OpenTelemetry collector on loopback: it takes traces over HTTP and keeps their spans."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

SECONDS = 45.0


@dataclass(frozen=True)
class Span:
    """One span as it was sent."""

    trace: str
    id: str
    parent: str
    name: str
    began: float
    ended: float
    facts: dict[str, Any]
    service: str
    is_error: bool


@dataclass
class Collector:
    """Keeps what it is sent, from those who show its key."""

    key: str = "key-of-the-collector-0123456789"
    spans: list[Span] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._changed = threading.Condition()
        handler = type("Handler", (_Handler,), {"owner": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join(SECONDS)
        self._server.server_close()

    @property
    def settings(self) -> dict[str, str]:
        """What a bridge has to know of it."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self._server.server_address[1]}",
            "OTEL_EXPORTER_OTLP_HEADERS": f"x-key={self.key}",
        }

    def wait(self, done: Callable[[list[Span]], bool]) -> list[Span]:
        """Wait until the spans are as they should be; returns them."""
        with self._changed:
            if not self._changed.wait_for(lambda: done(self.spans), SECONDS):
                raise TimeoutError("\n".join(map(str, self.spans)) or "no spans")
            return list(self.spans)

    def take(self, body: bytes) -> None:
        """Keep the spans of a request."""
        sent = ExportTraceServiceRequest.FromString(body)
        with self._changed:
            for one in sent.resource_spans:
                service = {each.key: each.value.string_value for each in one.resource.attributes}
                for scope in one.scope_spans:
                    self.spans += [_span(each, service["service.name"]) for each in scope.spans]
            self._changed.notify_all()


def _span(sent: Any, service: str) -> Span:
    values = ((each.key, each.value) for each in sent.attributes)
    return Span(
        sent.trace_id.hex(),
        sent.span_id.hex(),
        sent.parent_span_id.hex(),
        sent.name,
        sent.start_time_unix_nano / 1e9,
        sent.end_time_unix_nano / 1e9,
        {name: getattr(value, value.WhichOneof("value")) for name, value in values},
        service,
        sent.status.code == 2,
    )


class _Handler(BaseHTTPRequestHandler):
    owner: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        allowed = self.path == "/v1/traces" and self.headers["x-key"] == self.owner.key
        if allowed:
            self.owner.take(body)
        self.send_response(200 if allowed else 403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is called there
        """Say nothing."""
