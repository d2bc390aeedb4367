"""Answer questions with the least LLM spending that still keeps a promise.

The names below are loaded when they are first used, so that importing this takes no time.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farthing.api import (
        Policy,
        Traces,
        fit,
        from_records,
        load,
        read_traces,
        recommend,
        sample_log,
    )
    from farthing.promises.kinds.agreement import Agreement
    from farthing.promises.kinds.budget import Budget
    from farthing.promises.kinds.coverage import Coverage
    from farthing.promises.kinds.parity import Parity
    from farthing.promises.kinds.selective import Selective

__version__ = "0.2.0"
__all__ = [
    "Agreement",
    "Budget",
    "Coverage",
    "Parity",
    "Policy",
    "Selective",
    "Shift",
    "Traces",
    "compare",
    "fit",
    "from_records",
    "generate",
    "load",
    "read_traces",
    "recommend",
    "sample_log",
]
_KINDS = frozenset({"Agreement", "Budget", "Coverage", "Parity", "Selective"})
_LAB = dict.fromkeys(("Shift", "compare", "generate"), "farthing_lab.api.functions")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'farthing' has no attribute '{name}'")
    from importlib import import_module  # noqa: PLC0415

    room = f"farthing.promises.kinds.{name.lower()}" if name in _KINDS else "farthing.api"
    try:
        value = getattr(import_module(_LAB.get(name, room)), name)
    except ModuleNotFoundError as missing:
        if name not in _LAB or not _LAB[name].startswith(str(missing.name)):
            raise
        from farthing.errors import MissingPackageError  # noqa: PLC0415

        needs = str(MissingPackageError(f"farthing.{name}", "farthing-lab"))
        raise ImportError(needs, name=missing.name) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
