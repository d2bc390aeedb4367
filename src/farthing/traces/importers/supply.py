"""What a log lacks, from elsewhere: accepted answers from a file, costs from prices of tokens."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from farthing.errors import InputError
from farthing.models.base import Usage
from farthing.models.prices import Price
from farthing.money import usd_from_nano
from farthing.tasks.base import is_answer
from farthing.traces.base import Call, Trace
from farthing.traces.importers.base import ImportedCall
from farthing.traces.importers.row import Row, unpacked
from farthing.traces.importers.source import Source

MOST_USD = 1e6
"""A call of more than that is a mistake, as in `traces/base.py`."""
FindPrice = Callable[[str, str | None], Price | None]
"""From a model's name, and its seller where one is known, to its published price."""
_QUESTION = ("id", "question_id", "custom_id", "sample_id", "question", "prompt", "input", "text")
_ACCEPTED = (
    "gold", "answers", "answer", "target", "expected", "reference", "ground_truth", "label",
)  # fmt: skip


@dataclass
class Gold:
    """Accepted answers by question: by its id, or by its text."""

    path: str
    answers: Mapping[str, list[str]]
    used: set[str] = field(default_factory=set)

    def of(self, *names: str | None) -> list[str]:
        """Return the answers under the first of these names that has any."""
        for name in names:
            if name and name.strip() in self.answers:
                self.used.add(name.strip())
                return self.answers[name.strip()]
        return []


def read_gold(path: str | Path) -> Gold:
    """Read accepted answers: CSV or JSON Lines with a question's id or text, and its answers.

    Rows of the same question add to its answers; in JSON a list is several at once.

    Raises:
        InputError: the file cannot be read, or a row lacks either.
    """
    answers: dict[str, list[str]] = {}
    source = Source(path)
    for row in source.rows():
        named = Row({name.casefold(): value for name, value in row.values.items()}, row.place)
        accepted = _accepted(named)
        names = {str(named.find(name)[1]).strip() for name in _QUESTION if named.text(name)}
        if not names:
            raise row.place.refusal("id", "is missing; give the question's id or text")
        if not accepted:
            raise row.place.refusal("gold", "is missing; give the accepted answer")
        for name in names:
            known = answers.setdefault(name, [])
            known += [answer for answer in accepted if answer not in known]
    if not answers:
        raise InputError(f"{path}: holds no accepted answer; give a row a question")
    return Gold(str(path), answers)


@dataclass
class Priced:
    """Costs that were worked out from tokens, and those that stay unknown."""

    own: Mapping[str, Price]
    """The user's prices, by model."""
    published: FindPrice
    found: dict[str, Price] = field(default_factory=dict)
    """Published prices that were used, by model."""
    unpriced: dict[str, int] = field(default_factory=dict)
    """Models that nothing prices, to the calls that so have no cost."""
    uncounted: dict[str, int] = field(default_factory=dict)
    """Models with calls whose tokens are not recorded, to these calls."""
    _known: dict[tuple[str, str | None], Price | None] = field(default_factory=dict)

    def fill(self, call: Call, recorded: ImportedCall) -> Call:
        """Return a call with its cost, where it can be worked out."""
        if call.cost_usd is not None or call.error is not None:
            return call
        model = call.role
        if call.input_tokens is None or call.output_tokens is None:
            self.uncounted[model] = self.uncounted.get(model, 0) + 1
            return call
        price = self._price(recorded)
        if price is None:
            self.unpriced[model] = self.unpriced.get(model, 0) + 1
            return call
        used = Usage(call.input_tokens, call.output_tokens)
        usd = usd_from_nano(price.cost_nano(used, call.latency_s or 0.0))
        if usd > MOST_USD:
            problem = f"make the call cost ${usd:g}; check them, and the price of {model}"
            raise recorded.place.refusal("tokens", problem)
        return msgspec.structs.replace(call, cost_usd=usd)

    def _price(self, recorded: ImportedCall) -> Price | None:
        if recorded.model in self.own:
            return self.own[recorded.model]
        listed = recorded.priced_as or recorded.model, recorded.provider
        if listed not in self._known:
            self._known[listed] = self.published(*listed)
        price = self._known[listed]
        if price is not None:
            self.found[recorded.model] = price
        return price


def with_gold(trace: Trace, gold: Gold | None, also: Iterable[str | None] = ()) -> Trace:
    """Return a trace with its accepted answers, where it has none and the file has some."""
    if gold is None:
        return trace
    found = gold.of(trace.id, *also, trace.question)
    return trace if trace.gold or not found else msgspec.structs.replace(trace, gold=found)


def _accepted(row: Row) -> list[str]:
    name, value = row.find(*_ACCEPTED)
    several: Any = unpacked(value)
    if isinstance(several, list) and all(isinstance(answer, str) for answer in several):
        return [answer for answer in several if is_answer(answer)]
    answer = str(value).strip() if isinstance(value, str) else row.text(name)
    return [answer] if answer else []
