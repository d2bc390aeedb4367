"""A request that gets no answer: an id in its reply, and a row where traffic is recorded."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from starlette.requests import ClientDisconnect

from farthing.gateway.attempts import attempts_json
from farthing.gateway.charging import ChargeAttempt
from farthing.gateway.chat_request import ChatRequest
from farthing.gateway.deadline import Deadline
from farthing.gateway.errors import ApiError, logged, refusal, shutting_down
from farthing.gateway.recording.failures import FailedRequest
from farthing.gateway.recording.traffic import Traffic
from farthing.storage.keys import KeyRecord


@dataclass
class RequestUnderWay:
    """One request from its first byte on, as far as it is known by now."""

    trace: str
    traffic: Traffic | None
    """Where failures are written; None: nowhere."""
    models: Sequence[str] = ()
    """What may be asked for."""
    admitted: bool = False
    """Whether its key opens this door: what strangers send is not written down."""
    key: KeyRecord | None = None
    request: ChatRequest | None = None
    tries: list[ChargeAttempt] = field(default_factory=list)
    deadline: Deadline = field(default_factory=lambda: Deadline.within(0))
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

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

    @property
    def model(self) -> str | None:
        """What it asks for, where there is such a model: a client's own words are no name."""
        request = self.request
        return request.model if request is not None and request.model in self.models else None

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
