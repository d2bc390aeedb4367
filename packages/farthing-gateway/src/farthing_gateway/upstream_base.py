"""Who answers a request that names a model: what it can cost, its reply, whole or in pieces."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from farthing.models.base import Usage
from farthing.models.failures import ReplyFailure
from farthing.models.prices import Price
from farthing.models.retry import RetryPolicy
from farthing_gateway.apis.base import Api
from farthing_gateway.apis.chat import CHAT
from farthing_gateway.chat_request import ChatRequest
from farthing_gateway.request_schema import RequestError
from farthing_gateway.storage.ledger.base import LARGEST, Amount

ASSUMED_OUTPUT = 4_096
"""Most output tokens where one must name a limit and nobody does: of a policy's task, of a model
that is no HTTP endpoint, and of what counts against a rate limit until the reply is there."""


@dataclass(frozen=True)
class Bound:
    """The most that one try of a request can take, as it is sent."""

    nano: int | None
    """Nano-dollars; None where the model has no price."""
    tokens: int
    """Input and output together."""
    claimed: "Bound | None" = None
    """The most that a reply can claim to have taken: all that the model can read and write, at its
    dearest rate; None: nobody says how much that is."""
    dropped: tuple[str, ...] = ()
    """What of the request is left out, by its place."""

    @property
    def amount(self) -> Amount:
        """The same as a ledger counts it; without a price, no money."""
        return Amount(min(self.nano or 0, LARGEST), min(self.tokens, LARGEST), 1)


@dataclass(frozen=True)
class Reply:
    """What came back, and what it took."""

    body: bytes
    """JSON as the provider sent it; empty after a stream."""
    usage: Usage
    cached_tokens: int
    """Input tokens that were read from the provider's cache."""
    cost_nano: int | None
    """Price of all tries, in nano-dollars; None where the model has no price."""
    latency_s: float
    """From sending to the last byte, in seconds."""
    model: str
    """Name of the model that answered, as the provider gives it."""
    tries: int = 1
    """Calls that it took; all but the last one failed."""
    api: Api = CHAT
    """Whose form the body has."""
    cut: ReplyFailure | None = None
    """Why it is no answer, though a client has it."""
    listed_nano: int | None = None
    """What its tokens cost by the list, where the reply says that another price was billed."""


class StreamedReply(Protocol):
    """A reply in pieces: iterate, then read `reply`."""

    def __aiter__(self) -> AsyncIterator[list[bytes]]:
        """Return the pieces as they arrive, those of one read of the connection together.

        A piece is the data of an event, without `data: `; what ends the stream is none.
        """
        ...

    async def __anext__(self) -> list[bytes]:
        """Return the next pieces, at least one."""
        ...

    @property
    def api(self) -> Api:
        """Whose form the pieces have."""
        ...

    @property
    def ended(self) -> bool:
        """Whether all pieces are there, and `reply` with them."""
        ...

    @property
    def so_far(self) -> Reply | None:
        """The most that it took if it is left now; None: nothing bounds that."""
        ...

    @property
    def reply(self) -> Reply:
        """What it took, known once the pieces are at their end; RuntimeError before."""
        ...


class UpstreamCall(Protocol):
    """A request as one model is sent it; each `send` or `stream` is one try."""

    @property
    def bound(self) -> Bound:
        """The most that one try can take."""
        ...

    @property
    def rated_tokens(self) -> int:
        """Tokens that it counts for against a rate limit until its reply is there."""
        ...

    async def send(self, timeout_s: float | None = None) -> Reply:
        """Try once; cancelling the task closes the connection.

        Args:
            timeout_s: most seconds to the last byte, where that is less than the section's.
        """
        ...

    def stream(self, timeout_s: float | None = None) -> AbstractAsyncContextManager[StreamedReply]:
        """Try once, for a reply in pieces; leaving the block closes the connection.

        The first piece is there when the block begins: what fails before it fails there.
        """
        ...


class Upstream(Protocol):
    """A model that answers requests; safe to call many times at once from one event loop."""

    @property
    def name(self) -> str:
        """What clients call it: the name of its section."""
        ...

    @property
    def model(self) -> str:
        """What its provider calls it."""
        ...

    @property
    def price(self) -> Price | None:
        """What it costs; None where nothing says so."""
        ...

    @property
    def max_output(self) -> int | None:
        """Most output tokens that it writes, whatever is asked for; None: nobody says."""
        ...

    @property
    def claimed(self) -> Bound | None:
        """The most that a reply to a chat can claim; None: nobody says what the model takes in."""
        ...

    @property
    def patience(self) -> RetryPolicy:
        """How often and how long to try."""
        ...

    @property
    def notes_sending(self) -> bool:
        """Whether its calls note when they are written (`models/chat_endpoint.py`)."""
        ...

    def prepare(self, request: ChatRequest, default_max_output: int | None) -> UpstreamCall:
        """Return the call that a request makes; raises where it cannot be sent.

        Args:
            request: what is asked.
            default_max_output: output tokens of a choice where the request names no limit; None:
                the model's own limit.
        """
        ...

    async def aclose(self) -> None:
        """Close connections and let go of memory."""
        ...


def check_translated(request: ChatRequest, name: str) -> None:
    """Refuse a request that a model is to be asked as a chat, and that is more than one can say."""
    if request.untranslated:
        raise RequestError(
            f"'{name}' is asked by chat completions here, which cannot say '{request.untranslated}'"
            f" of {request.api.path}; leave it out, or ask a model that has this address",
            request.untranslated,
        )
