"""Exports the stages of turns as OpenTelemetry traces: one trace per turn, one span per stage.

The ids of a trace are computed from the number of its turn. So nothing is stored for it, and spans
that several runs and machines export belong to one trace.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from opentelemetry.util.re import parse_env_headers

if TYPE_CHECKING:
    from pydantic import SecretStr

_EXPORT_SECONDS: Final = 3.0
"""How long a collector may take; what it does not take in time is lost."""
_WHOLE: Final = "turn"
"""The stage that all others are parts of."""


class _Ids(RandomIdGenerator):
    """Random ids, except where both are given."""

    def __init__(self) -> None:
        self.given: tuple[int, int] | None = None

    def generate_trace_id(self) -> int:
        return super().generate_trace_id() if self.given is None else self.given[0]

    def generate_span_id(self) -> int:
        return super().generate_span_id() if self.given is None else self.given[1]


class Tracer:
    """Exports spans to a collector, in the background."""

    def __init__(self, url: str, headers: SecretStr | None, secret_key: SecretStr) -> None:
        exporter = OTLPSpanExporter(
            f"{url.rstrip('/')}/v1/traces",
            headers=parse_env_headers(headers.get_secret_value(), liberal=True) if headers else {},
            timeout=_EXPORT_SECONDS,
        )
        self._key = hashlib.sha256(secret_key.get_secret_value().encode()).digest()
        self._ids = _Ids()
        # The names that the operator gives in the usual variables win.
        resource = Resource({"service.name": "agent-bridge"}).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(
            resource=resource, id_generator=self._ids, shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("agent-bridge")

    def record(
        self, stage: str, turn: int, began: float, ended: float, facts: dict[str, str]
    ) -> None:
        """Export one stage of a turn."""
        trace, root = self._ids_of(turn)
        if self._provider.sampler.should_sample(None, trace, stage).decision is Decision.DROP:
            return
        whole = SpanContext(trace, root, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
        inside = set_span_in_context(NonRecordingSpan(whole), Context())
        self._ids.given = (trace, root) if stage == _WHOLE else None
        span = self._tracer.start_span(
            stage,
            context=Context() if stage == _WHOLE else inside,
            attributes={
                "agent_bridge.turn": turn,
                **{f"agent_bridge.{name}": value for name, value in facts.items()},
            },
            start_time=int(began * 1e9),
        )
        self._ids.given = None
        if "failed" in facts.values():
            span.set_status(Status(StatusCode.ERROR))
        span.end(int(max(ended, began) * 1e9))

    def close(self) -> None:
        """Export what waits; takes a few seconds at most."""
        self._provider.shutdown()

    def _ids_of(self, turn: int) -> tuple[int, int]:
        """Compute the ids of a turn's trace and of its root: the same on every machine."""
        made = hashlib.blake2b(str(turn).encode(), key=self._key, digest_size=24).digest()
        return int.from_bytes(made[:16]), int.from_bytes(made[16:])
