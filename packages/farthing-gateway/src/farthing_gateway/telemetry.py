"""OpenTelemetry: a span for each request with one for each of its tries, and the metrics of models.

Names are those of the semantic conventions for generative AI; no text of a request or reply is
sent. Where to is said by the environment (`OTEL_EXPORTER_OTLP_ENDPOINT` and others), as its SDK
reads it.
"""

import asyncio
import time
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from farthing import __version__
from farthing.errors import MissingExtraError
from farthing.money import usd_from_nano
from farthing_gateway.charging import ChargeAttempt
from farthing_gateway.request_context import RequestContext

SCOPE = "farthing_gateway"
_OPERATIONS = {"completions": "text_completion", "embeddings": "embeddings"}
"""API to the operation; all others are chats."""
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = tuple(4**power for power in range(14))
"""Bounds of buckets, as the conventions advise."""


class Telemetry:
    """Says of each request, once it has ended, when it and its tries began and what they took."""

    def __init__(self, tracers: Any, meters: Any, models: Mapping[str, str]) -> None:
        """Send spans and metrics.

        Args:
            tracers: the SDK's provider of tracers.
            meters: its provider of meters.
            models: what clients call a model to what its provider calls it.
        """
        self._api = import_module("opentelemetry.trace")
        propagation = import_module("opentelemetry.trace.propagation.tracecontext")
        self._context = propagation.TraceContextTextMapPropagator()
        self._providers = (tracers, meters)
        self._models = models
        self._tracer = tracers.get_tracer(SCOPE, __version__)
        meter = meters.get_meter(SCOPE, __version__)
        self._seconds = meter.create_histogram(
            "gen_ai.client.operation.duration",
            "s",
            "Seconds that tries of models took",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            "Tokens that calls of models took",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )
        self._cost = meter.create_counter(
            "farthing.cost", "USD", "US dollars that calls of models cost"
        )

    def ended(self, asked: RequestContext, status: int) -> None:
        """Send what is known of a request that ended with a status, once."""
        if asked.reported:
            return
        asked.reported = True
        now = time.time_ns()
        parent = self._context.extract({"traceparent": asked.parent}) if asked.parent else None
        api = None if asked.read is None else asked.read.api
        span = self._tracer.start_span(
            f"POST /v1{asked.path}",
            context=parent,
            kind=self._api.SpanKind.SERVER,
            start_time=now - int(1e9 * asked.took_s),
            attributes=_known(
                {
                    "http.request.method": "POST",
                    "http.route": f"/v1{asked.path}",
                    "http.response.status_code": status,
                    "error.type": str(status) if status >= 400 else None,
                    "gen_ai.request.model": asked.model,
                    "farthing.trace_id": asked.trace,
                    "farthing.key": asked.key and asked.key.id,
                    "farthing.cost_usd": usd_from_nano(sum(t.cost_nano for t in asked.tries)),
                }
            ),
        )
        if status >= 500:
            span.set_status(self._api.StatusCode.ERROR)
        within = self._api.set_span_in_context(span)
        operation = _OPERATIONS.get(api.name if api else "", "chat")
        for one in asked.tries:
            self._tried(one, operation, within)
        span.end(now)

    def _tried(self, one: ChargeAttempt, operation: str, within: Any) -> None:
        model = self._models.get(one.model, one.model)
        named = {"gen_ai.operation.name": operation, "gen_ai.request.model": model}
        error = _known({"error.type": one.error and one.error.type})
        began = time.time_ns() - int(1e9 * (time.perf_counter() - one.began))
        usage = one.usage
        span = self._tracer.start_span(
            f"{operation} {model}",
            context=within,
            kind=self._api.SpanKind.CLIENT,
            start_time=began,
            attributes=_known(
                {
                    **named,
                    **error,
                    "gen_ai.usage.input_tokens": usage and usage.input_tokens,
                    "gen_ai.usage.output_tokens": usage and usage.output_tokens,
                    "farthing.model": one.model,
                    "farthing.cost_usd": usd_from_nano(one.cost_nano),
                    "farthing.cost_estimated": one.estimated,
                }
            ),
        )
        if error:
            span.set_status(self._api.StatusCode.ERROR)
        span.end(began + int(1e9 * one.took_s))
        self._seconds.record(one.took_s, {**named, **error})
        self._cost.add(usd_from_nano(one.cost_nano), named)
        if usage is not None:
            for kind, number in (("input", usage.input_tokens), ("output", usage.output_tokens)):
                self._tokens.record(number, {**named, "gen_ai.token.type": kind})

    async def aclose(self) -> None:
        """Send what waits, for as long as the SDK waits for that."""
        for provider in self._providers:
            await asyncio.to_thread(provider.shutdown)


def open_telemetry(models: Mapping[str, str]) -> Telemetry:
    """Return what sends to the collector that the environment names.

    Args:
        models: what clients call a model to what its provider calls it.

    Raises:
        MissingExtraError: the SDK is not installed.
    """
    try:
        traces = import_module("opentelemetry.sdk.trace")
        batches = import_module("opentelemetry.sdk.trace.export")
        metrics = import_module("opentelemetry.sdk.metrics")
        readers = import_module("opentelemetry.sdk.metrics.export")
        resources = import_module("opentelemetry.sdk.resources")
        spans = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
        figures = import_module("opentelemetry.exporter.otlp.proto.http.metric_exporter")
    except ModuleNotFoundError:
        raise MissingExtraError("OpenTelemetry", "otel", "farthing-gateway") from None
    named = {"service.name": "farthing", "service.version": __version__}
    # What the environment says of the service goes before our own name for it.
    resource = resources.Resource(named).merge(resources.OTELResourceDetector().detect())
    tracers = traces.TracerProvider(resource=resource)
    tracers.add_span_processor(batches.BatchSpanProcessor(spans.OTLPSpanExporter()))
    reader = readers.PeriodicExportingMetricReader(figures.OTLPMetricExporter())
    return Telemetry(tracers, metrics.MeterProvider([reader], resource=resource), models)


def _known(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}
