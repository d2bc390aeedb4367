"""What may be bought when: the paper's rounds, or one call at a time.

A protocol lays the calls of a question out as *lines*: in each line the next item is bought, or
none. The paper's protocol has one line whose items are rounds, with every role's call in each. The
lazy protocol has a line for each role, whose items are single calls; in a pool that is one call for
each model, in any order.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from farthing.errors import InputError
from farthing.traces.arrays import NO_ANSWER, BoolArray, IntArray, TraceArrays
from farthing.traces.assemble import asked

ProtocolName = Literal["paper", "lazy"]


@dataclass(frozen=True)
class Protocol:
    """The calls of a question, numbered t * L + l for round t and role l, as lines of items."""

    name: ProtocolName
    cells: IntArray
    """[F, K, U] the calls of each item of each line."""

    @property
    def lines(self) -> int:
        """The number of lines, F."""
        return int(self.cells.shape[0])

    @property
    def items(self) -> int:
        """The number of items in a line, K."""
        return int(self.cells.shape[1])

    @property
    def steps(self) -> int:
        """The number of purchases until nothing is left to buy."""
        return self.lines * self.items

    def seen(self, bought: IntArray) -> BoolArray:
        """Return which calls are known after so many purchases in each line.

        Args:
            bought: [R, F] number of items bought in each line.

        Returns:
            [R, T * L]
        """
        known = np.zeros((len(bought), self.cells.size), dtype=bool)
        within = np.arange(self.items) < bought[:, :, None]
        known[:, self.cells] = within[..., None]
        return known


def paper(traces: TraceArrays) -> Protocol:
    """Return the paper's protocol: a round at a time, every role paid in each."""
    return laid_out("paper", traces.horizon, traces.n_roles)


def lazy(traces: TraceArrays) -> Protocol:
    """Return the lazy protocol: a call at a time, of any role; of a role, the next one recorded.

    In a cascade each round is another model's, and so a line of its own.

    Raises:
        InputError: some calls have seen others, so that what they would have said alone is unknown.
    """
    if not traces.independent.all():
        dependent = int((~traces.independent).sum())
        raise InputError(
            f"{dependent:,} of {len(traces):,} questions have calls that saw earlier ones, so none "
            "can be skipped; use the paper's protocol, or record independent calls"
        )
    return laid_out("lazy", traces.horizon, traces.n_roles)


def laid_out(name: ProtocolName, rounds: int, roles: int) -> Protocol:
    """Return a protocol by its name, for so many rounds of so many roles."""
    calls = np.arange(rounds * roles).reshape(rounds, roles)
    if name == "paper":
        return Protocol(name, calls[None])
    return Protocol(name, (calls if roles == 1 else calls.T)[:, :, None])


def protocol(name: str, traces: TraceArrays) -> Protocol:
    """Return a protocol by its name."""
    return {"paper": paper, "lazy": lazy}[name](traces)


@dataclass(frozen=True)
class Ledger:
    """Prices, answers and grades of every item of some questions, ready to be looked up."""

    cost_nano: IntArray
    """[n, F, K]"""
    correct: BoolArray
    """[n, F, K] whether one of its answers is right."""
    on_offer: BoolArray
    """[n, F, K] whether it was recorded, so that it can be bought."""


def priced(traces: TraceArrays, rules: Protocol) -> Ledger:
    """Look up every item once; a line ends where the first of its items was not recorded."""
    n = len(traces)
    cost = traces.cost_nano.reshape(n, -1)[:, rules.cells].sum(axis=3)
    correct = np.any(traces.correct.reshape(n, -1)[:, rules.cells], axis=3)
    made = asked(traces).reshape(n, -1)[:, rules.cells].any(axis=3)
    made |= traces.complete[:, None, None] & (traces.n_roles > 1)
    return Ledger(cost, np.asarray(correct), np.logical_and.accumulate(made, axis=2))


def arrange(traces: TraceArrays, rules: Protocol, order: IntArray) -> TraceArrays:
    """Lay the questions out as rounds of one purchase each, in an order of their own.

    Everything that is known of policies over rounds then holds for them: sets nested in the
    threshold, one critical threshold a question.

    Args:
        traces: the questions.
        rules: the protocol.
        order: [n, F * K] the line that each purchase is made in; -1 once nothing is on offer.

    Returns:
        The same answers as [n, F * K, U]; a purchase that cannot be made costs and says nothing.
    """
    n = len(traces)
    lines = order[:, :, None] == np.arange(rules.lines)
    item = np.minimum((lines.cumsum(axis=1) * lines).sum(axis=2) - 1, rules.items - 1)
    cells = rules.cells[order, np.maximum(item, 0)]
    nothing = (order < 0)[:, :, None]
    rows = np.arange(n)[:, None, None]
    answer = np.where(nothing, NO_ANSWER, traces.answer.reshape(n, -1)[rows, cells])
    width = rules.cells.shape[2]
    return replace(
        traces,
        roles=traces.roles if width == traces.n_roles else ("answer",),
        models=traces.models if width == traces.n_roles else ("",),
        answer=answer.astype(np.int16),
        correct=traces.correct.reshape(n, -1)[rows, cells] & ~nothing,
        cost_nano=np.where(nothing, 0, traces.cost_nano.reshape(n, -1)[rows, cells]),
        largest_cost_nano=np.where(
            nothing, 0, traces.largest_cost_nano.reshape(n, -1)[rows, cells]
        ),
        signals={},
        recorded=np.where(traces.complete, rules.steps, 0).astype(np.int16),
        replies={},
    )
