"""What is asked of a database of accounts, and what it answers.

Operations and outcomes are plain data with a JSON form, so that many of them travel as one.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class _Record(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower):
    """A record whose JSON form names its kind in lower case."""


class HoldRow(msgspec.Struct, frozen=True):
    """A row of `ledger_holds`."""

    id: str
    accounts: list[str]
    windows: list[str]
    """Names of the windows that it counts in, one of each period."""
    nano: int
    tokens: int
    calls: int
    made_at: str
    lease_ends: str
    state: str
    """`reserved`, `sent` or `unknown`."""
    note: str
    marked_at: str | None = None
    """When it became `unknown`."""


class Check(msgspec.Struct, frozen=True):
    """A limit that a reservation is held to."""

    account: str
    window: str
    unit: str
    most: int
    needed: int
    """How much the reservation needs of the unit."""


class Reserve(_Record, frozen=True):
    """Write a hold if every check allows it."""

    hold: HoldRow
    checks: list[Check]


class MarkSent(_Record, frozen=True, tag="sent"):
    """Note that a hold is about to be sent."""

    id: str


class Extend(_Record, frozen=True):
    """Let a hold's lease end at another moment."""

    id: str
    lease_ends: str


class Settle(_Record, frozen=True):
    """Close a hold at a cost; at none, that gives it back."""

    id: str
    nano: int
    tokens: int
    calls: int
    marked: bool = False
    """Whether only a hold of unknown outcome may be closed."""


class Mark(_Record, frozen=True):
    """Charge a hold in full and mark it as unknown."""

    id: str
    now: str


class SweepEnded(_Record, frozen=True, tag="sweep"):
    """Close every hold whose lease has ended."""

    now: str


class Unknowns(_Record, frozen=True):
    """List holds of unknown outcome."""


class Balances(_Record, frozen=True):
    """Read the windows of accounts."""

    accounts: list[str]
    windows: list[str]


class Claim(_Record, frozen=True):
    """Take an idempotency key."""

    key: str
    fingerprint: str
    token: str
    """Tells a claim that is tried again from another's."""
    now: str
    lease_ends: str


class Finish(_Record, frozen=True):
    """Keep the answer under a key."""

    key: str
    status: int
    body: bytes


class Abandon(_Record, frozen=True):
    """Free a key."""

    key: str


class Forget(_Record, frozen=True):
    """Drop old keys, minutes and hours."""

    before: str
    now: str


Operation = (
    Reserve
    | MarkSent
    | Extend
    | Settle
    | Mark
    | SweepEnded
    | Unknowns
    | Balances
    | Claim
    | Finish
    | Abandon
    | Forget
)


class Ok(_Record, frozen=True):
    """It was done."""


class Broken(_Record, frozen=True):
    """A reservation was refused."""

    used: list[tuple[int, int]]
    """Which checks failed, by their index, and how much is settled and held there."""


class Gone(_Record, frozen=True):
    """There is no such hold in a state that allows it."""


class SweepResult(_Record, frozen=True, tag="closed"):
    """What a sweep closed."""

    returned: int
    charged: int


class Holds(_Record, frozen=True):
    """Holds of unknown outcome, oldest first."""

    rows: list[HoldRow]


class WindowRow(msgspec.Struct, frozen=True):
    """A row of `ledger_windows`."""

    account: str
    window: str
    settled_nano: int
    settled_tokens: int
    settled_calls: int
    held_nano: int
    held_tokens: int
    held_calls: int
    overcharged_nano: int


class Windows(_Record, frozen=True):
    """The windows that anything was ever reserved in, of those asked for."""

    rows: list[WindowRow]


class KeyRow(_Record, frozen=True, tag="key"):
    """An idempotency key that was taken before."""

    fingerprint: str
    lease_ends: str
    status: int | None
    """None while its request is under way."""
    body: bytes | None


class Count(_Record, frozen=True):
    """How many records were dropped."""

    number: int


Outcome = Ok | Broken | Gone | SweepResult | Holds | Windows | KeyRow | Count


class LedgerDatabase(Protocol):
    """Carries out operations."""

    async def apply(self, operations: Sequence[Operation]) -> list[Outcome]:
        """Carry out operations in their order, in one transaction; refused ones write nothing."""
        ...

    async def aclose(self) -> None:
        """Close it."""
        ...
