"""The budget of one question: every try is set aside at its dearest before it is sent."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from farthing.budgets.base import Ledger, Reservation
from farthing.errors import BudgetError, ModelError
from farthing.models.base import Completion, Model, Prompt
from farthing.runtime.base import Desk
from farthing.tasks.tools import Tool, ToolReply

T = TypeVar("T", Completion, ToolReply)


@dataclass
class Purse:
    """What one question has cost, and what it may still cost."""

    ledger: Ledger | None = None
    """Holds the budget; None where there is none."""
    spent_nano: int | None = 0
    """In nano-dollars; None once something was paid whose price is not known."""

    @property
    def left_nano(self) -> int | None:
        """What may still be set aside; None where there is no budget."""
        return None if self.ledger is None else self.ledger.balance().left_nano

    def desk(self, desk: Desk) -> "PurseDesk":
        """Return a desk that pays from this purse for what goes across another one."""
        return PurseDesk(self, desk)


@dataclass
class _Bill:
    """The tries of one call: money is set aside for one at a time."""

    purse: Purse
    held: Reservation | None = None
    """For the try under way, or the next one."""
    settled_nano: int = 0
    """What tries that ended cost."""

    def begin(self, largest_nano: Callable[[], int]) -> None:
        """Set aside the most that a try can cost, unless that is done."""
        if self.purse.ledger is not None and self.held is None:
            self.held = self.purse.ledger.reserve(largest_nano())

    def end(self, cost_nano: int | None) -> None:
        """Pay for a try; where a budget applies, an unknown cost is the largest."""
        if self.purse.ledger is not None and self.held is not None:
            cost_nano = self.held.nano if cost_nano is None else cost_nano
            self.purse.ledger.settle(self.held, cost_nano)
            self.held = None
        self.settled_nano += cost_nano or 0
        known = self.purse.spent_nano is not None and cost_nano is not None
        self.purse.spent_nano = (self.purse.spent_nano or 0) + (cost_nano or 0) if known else None


_bill: ContextVar[_Bill | None] = ContextVar("_bill", default=None)
"""Who pays for a try: between the desk and a try, inside a model, are its retries."""


class PurseDesk:
    """Pays from a purse; where it has a budget, the most that a try can cost is set aside first.

    A reply that comes from a log counts at what it cost when it was made, so that the same
    question under the same budget goes the same way.
    """

    def __init__(self, purse: Purse, desk: Desk) -> None:
        self._purse = purse
        self._desk = desk

    async def ask(self, model: Model, prompt: Prompt) -> Completion:
        """Have a model answer; see `Desk`."""
        largest = partial(model.largest_cost_nano, prompt)
        return await self._pay(largest, lambda: self._desk.ask(model, prompt))

    async def use(self, tool: Tool, query: str) -> ToolReply:
        """Have a tool answer; see `Desk`."""
        return await self._pay(lambda: tool.cost_nano, lambda: self._desk.use(tool, query))

    async def _pay(self, largest_nano: Callable[[], int], make: Callable[[], Awaitable[T]]) -> T:
        bill = _Bill(self._purse)
        bill.begin(largest_nano)
        token = _bill.set(bill)
        total: int | None = None
        try:
            reply = await make()
            total = reply.cost_nano
        except ModelError as error:
            total = error.cost_nano
            raise
        except BudgetError:
            total = bill.settled_nano  # the try that it forbids was not sent
            raise
        else:
            return reply
        finally:
            _bill.reset(token)
            bill.end(None if total is None else max(0, total - bill.settled_nano))


class Pursed:
    """A model each of whose tries is paid from the question's purse; belongs inside the retries.

    Without it only the first try of a call is sure to fit the budget.
    """

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """Name of the model, as prices and traces call it."""
        return self._model.name

    async def complete(self, prompt: Prompt) -> Completion:
        """Make one try.

        Raises:
            BudgetError: the question's budget does not allow it; nothing was sent.
            ModelError: the try failed.
        """
        bill = _bill.get()
        if bill is None:
            return await self._model.complete(prompt)
        bill.begin(partial(self._model.largest_cost_nano, prompt))
        try:
            return await self._model.complete(prompt)
        except ModelError as error:
            bill.end(error.cost_nano)
            raise

    def largest_cost_nano(self, prompt: Prompt) -> int:
        """Return the most that one try of this prompt can cost, in nano-dollars.

        Raises:
            UnpricedModelError: the model has no price; the message gives the line to add.
        """
        return self._model.largest_cost_nano(prompt)

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()
