"""Everything that can go wrong, in one tree.

    FarthingError
    ├── InputError                 what the user handed in is wrong; the command line exits with 2
    │   ├── TraceFormatError       a trace file: file, line, field, remedy
    │   ├── StoreError             a trace store that cannot be opened or written
    │   ├── TooFewTracesError      a split too small for what was asked
    │   ├── UnknownNameError       a policy, preset, task ... that nothing has registered
    │   ├── MissingExtraError      an optional dependency is not installed
    │   └── BundleError            a policy bundle that is foreign, damaged or tampered with
    └── CalibrationError           arrays that cannot be calibrated

Every message says what was wrong, where, and what to do about it.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class FarthingError(Exception):
    """The root of every error that Farthing raises on purpose."""


class InputError(FarthingError):
    """The user's input is wrong; one line says how to mend it."""


class TraceFormatError(InputError):
    """A trace file breaks the interchange form.

    >>> print(TraceFormatError("runs.jsonl", 3, "calls[0].cost_usd", "is -1; a cost must be >= 0"))
    runs.jsonl, line 3, calls[0].cost_usd: is -1; a cost must be >= 0
    """

    def __init__(self, file: str, line: int, field: str, problem: str) -> None:
        super().__init__(f"{file}, line {line}, {field}: {problem}")
        self.file, self.line, self.field, self.problem = file, line, field, problem


class StoreError(InputError):
    """A trace store cannot be opened, read or written."""


class TooFewTracesError(InputError):
    """There are not enough traces for what was asked; the message gives the numbers."""


class UnknownNameError(InputError):
    """Nothing is registered under this name.

    >>> print(UnknownNameError("policy", "randm", ["random", "uala"]))
    unknown policy 'randm'; did you mean 'random'? Known: random, uala
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        close = get_close_matches(name, names, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else "."
        super().__init__(f"unknown {kind} '{name}'{hint} Known: {', '.join(names)}")


class MissingExtraError(InputError):
    """An optional dependency is needed and absent.

    >>> print(MissingExtraError("reading Parquet", "parquet"))
    reading Parquet needs an optional dependency: pip install "farthing[parquet]"
    """

    def __init__(self, purpose: str, extra: str) -> None:
        super().__init__(f'{purpose} needs an optional dependency: pip install "farthing[{extra}]"')


class BundleError(InputError):
    """A policy bundle is foreign, damaged, tampered with, or from another version."""


class CalibrationError(FarthingError):
    """Scores that no threshold can be computed from."""
