"""A model that is no language model: it computes exactly, and stands in for a dear one.

It reads the last message: a chain of arithmetic (see `arithmetic`) on a line of its own, or else
the first sum or product in it. It is registered as a provider of models from here, since it reads
what tasks write.
"""

import re
from contextlib import suppress
from math import prod

import msgspec

from farthing.errors import InputError
from farthing.models.base import Model, Prompt
from farthing.models.prices import Price, PriceTable
from farthing.models.scripted import ScriptedModel
from farthing_lab.tasks.arithmetic import solve

UNREAD = "I can only compute chains such as a=4;b=a*3+5;b? and sums such as 3 + 4 * 5."
"""What it replies to everything else."""
LONGEST = 40
"""Most digits of a number that it reads."""
_SUM = re.compile(r"(?<![\w.])\d+(?:\s*[+*x×-]\s*\d+)+(?![\w.]*\d)")
_TERM = re.compile(r"([+-]?)([^+-]+)")


class CalculatorSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a calculator, as a configuration file gives them."""

    model: str = "calculator"
    """What prices and traces call it."""

    def price(self, prices: PriceTable) -> Price | None:
        return prices.find(self.model)

    def open(self, prices: PriceTable) -> Model:
        return ScriptedModel(_reply, name=self.model, price=self.price(prices))


def _reply(prompt: Prompt) -> str:
    value = calculate(prompt.messages[-1].content)
    return UNREAD if value is None else f"Answer: {value}"


def calculate(text: str) -> str | None:
    """Return what a text asks to be computed; None where it asks nothing of the kind.

    >>> calculate("c=b*7+2;a=4;b=a*3+5;c?"), calculate("What is 3 + 4 * 5?")
    ('1', '23')
    >>> calculate("What is the capital of France?") is None
    True
    """
    for line in text.splitlines():
        with suppress(InputError):
            return solve(line)
    found = _SUM.search(text)
    if found is None or max(map(len, re.findall(r"\d+", found[0]))) > LONGEST:
        return None
    return str(_sum(re.sub(r"\s", "", found[0])))


def _sum(text: str) -> int:
    terms = ((sign, re.split("[*x×]", factors)) for sign, factors in _TERM.findall(text))
    return sum((-1 if sign == "-" else 1) * prod(map(int, factors)) for sign, factors in terms)
