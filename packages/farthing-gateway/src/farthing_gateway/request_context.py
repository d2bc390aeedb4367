"""One request from its first byte to the last of its reply: what all that is done for it shares."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import uuid4

from starlette.requests import ClientDisconnect

from farthing_gateway.attempts import attempts_json
from farthing_gateway.charging import ChargeAttempt
from farthing_gateway.chat_request import ChatRequest
from farthing_gateway.deadline import Deadline
from farthing_gateway.errors import ApiError, logged, refusal, shutting_down
from farthing_gateway.recording.failures import FailedRequest
from farthing_gateway.recording.traffic import Traffic
from farthing_gateway.storage.keys import KeyRecord


@dataclass
class RequestContext:
    """A request under way, as far as it is known by now."""

    traffic: Traffic | None = None
    """Where failures are written; None: nowhere."""
    models: Sequence[str] = ()
    """What may be asked for."""
    trace: str = field(default_factory=lambda: uuid4().hex)
    """Its id in the recorded traffic."""
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    admitted: bool = False
    """Whether its key opens this door: what strangers send is not written down."""
    key: KeyRecord | None = None
    """None where no keys are needed."""
    read: ChatRequest | None = None
    """What it asks, once that was read."""
    deadline: Deadline = field(default_factory=lambda: Deadline.within(0))
    path: str = ""
    """Where it was posted, after the API's version."""
    outside: str | None = None
    """By what it is outside a policy's task, where it is or nearly is one's."""
    parent: str | None = None
    """The span that it is part of, as W3C's `traceparent` has it."""
    began: float = field(default_factory=time.monotonic)
    """In `time.monotonic`."""
    reported: bool = False
    """Whether OpenTelemetry has heard of its end."""
    tries: list[ChargeAttempt] = field(default_factory=list)
    """Every try that is made for it, in the order in which they began."""

    @property
    def request(self) -> ChatRequest:
        """What it asks."""
        assert self.read is not None, "read it first"  # noqa: S101
        return self.read

    @property
    def took_s(self) -> float:
        """Seconds since its first byte."""
        return time.monotonic() - self.began

    @property
    def model(self) -> str | None:
        """What it asks for, where there is such a model: a client's own words are no name."""
        asked = self.read
        return asked.model if asked is not None and asked.model in self.models else None

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Write down why the block fails; the error that it then raises names the request."""
        try:
            yield
        except ClientDisconnect:  # before its request was there
            raise
        except asyncio.CancelledError:
            self.failed(shutting_down())
            raise
        except Exception as error:  # noqa: BLE001 - each is written down
            logged(error)
            why = refusal(error)
            self.failed(why)
            raise replace(why, headers={**why.headers, "X-Farthing-Trace": self.trace}) from None

    def failed(self, why: ApiError) -> None:
        """Write down that it was refused, or failed."""
        if self.traffic is None or not self.admitted:
            return
        self.traffic.failed(
            FailedRequest(
                id=self.trace,
                at=self.at,
                key=self.key.id if self.key else None,
                model=self.model,
                status=why.status,
                code=why.code or why.kind,
                said=why.message,
                tries=attempts_json(self.tries),
                cost_nano=sum(one.cost_nano for one in self.tries),
                latency_s=self.deadline.took_s,
            )
        )
