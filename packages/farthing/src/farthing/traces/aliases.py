"""One model under several names: with who sells it, with the day of its version, or plain."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import structs

from farthing.models.thinking import EFFORT
from farthing.traces.base import Trace

_SELLER = re.compile(r"(.*/|[a-z]+:(chat|responses|messages|completion):|(openai|anthropic):)")
_VERSION = re.compile(r"-((\d{4}-\d{2}-\d{2}|\d{8})(-v\d+(:\d+)?)?|latest|\d{4})$|@\d{8}$")


def plain_name(model: str) -> str:
    """Return a model's name without who sells it and the day of its version.

    >>> [plain_name(name) for name in ("openai/gpt-4o", "gpt-4o-2024-08-06@low", "llama3:8b")]
    ['gpt-4o', 'gpt-4o@low', 'llama3:8b']
    """
    name = _VERSION.sub("", model.casefold())
    name, sign, effort = name.partition(EFFORT)
    return _VERSION.sub("", _SELLER.sub("", name)).replace(".", "-") + sign + effort


def proposals(traces: Sequence[Trace]) -> Iterator[str]:
    """Propose an alias for each name that looks like another's, where no question has both."""
    asked: dict[str, set[str]] = {}
    for trace in traces:
        for call in trace.calls:
            asked.setdefault(call.role, set()).add(trace.id)
    names = sorted(asked, key=lambda name: (len(name), name))
    for i, name in enumerate(names):
        for short in names[:i]:
            if plain_name(name) == plain_name(short) and not asked[name] & asked[short]:
                yield (
                    f"{name} and {short} may be one model under two names; "
                    f"--alias {name}={short} makes them one"
                )
                break


def renamed(traces: Sequence[Trace], aliases: Mapping[str, str]) -> list[Trace]:
    """Return traces whose roles and models have their new names; others keep theirs."""

    def new(name: Any) -> Any:
        model, sign, effort = str(name).partition(EFFORT)
        short = aliases.get(model)
        return aliases.get(name, name if short is None else short + sign + effort)

    return [
        structs.replace(
            trace,
            calls=[
                structs.replace(call, role=new(call.role), model=new(call.model))
                for call in trace.calls
            ],
        )
        for trace in traces
    ]
