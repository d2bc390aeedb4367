"""What is known of the system behind recorded traces."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from farthing.errors import InputError
from farthing.runtime.job import read_job
from farthing.traces.arrays import TraceArrays
from farthing.traces.store import STORES, Store
from farthing.traces.system import System, changes, recorded_system, unrecorded


@dataclass(frozen=True)
class Behind:
    """What is known of the system behind some traces."""

    system: System | None
    """None: nobody declared one; their questions may each say what they were asked with."""
    note: str = ""
    """Why it is not known, and what follows."""


def made_with(paths: Sequence[Path], arrays: TraceArrays, job: Path | None = None) -> Behind:
    """Return what traces were made with, as their store says, or else the job that made them."""
    declared = None if job is None else read_job(job).system()
    if job is not None and declared is not None:
        _check_declared(job, declared, arrays)
    recorded: list[System | None] = []
    for path in paths:
        recorded += [system for system in _recorded(path) if system not in recorded]
    return _behind(" and ".join(map(str, paths)), arrays, recorded, job, declared)


def _recorded(path: Path) -> Sequence[System | None]:
    if path.suffix not in STORES:
        return [None]
    with Store.read(path) as store:
        return store.systems()


def _behind(
    traces: str,
    arrays: TraceArrays,
    recorded: Sequence[System | None],
    job: Path | None,
    declared: System | None,
) -> Behind:
    """Return the one system that traces were made with, if there is one.

    Of the systems that were recorded, None stands for traces of which nothing is told; questions
    may each say what they were asked with. `declared` is the system of the job that is said to have
    made them.
    """
    known = _distinct([system for system in recorded if system is not None])
    if declared is not None:
        for other in (found for system in known if (found := changes(declared, system))):
            raise InputError(
                f"{job}: did not make all of {traces}, which was recorded with another system: "
                f"{', '.join(other)}; leave the job out"
            )
        return Behind(declared)
    if len(known) > 1:
        return Behind(
            None,
            f"{traces} was collected under {len(known)} systems, so the bundle holds none of them "
            "and a changed prompt, parameter or price will not be noticed; between the first two "
            f"changed: {', '.join(changes(*known[:2]))}",
        )
    if known and None not in recorded:
        return Behind(known[0])
    lacks = ("system prompt", "parameters") if known else unrecorded(recorded_system(arrays))
    if not lacks:
        return Behind(None)
    return Behind(
        None,
        f"{traces} does not say what all of it was made with ({' and '.join(lacks)}), so a changed "
        "prompt, parameter or price goes unnoticed: name its job with --job",
    )


def _distinct(systems: Sequence[System]) -> list[System]:
    """Return systems that differ; of those that do not, the last, since later ones say more."""
    found: list[System] = []
    for system in reversed(systems):
        if all(changes(system, other) for other in found):
            found.append(system)
    return found[::-1]


def _check_declared(job: Path, system: System, traces: TraceArrays) -> None:
    for role, model in zip(traces.roles, traces.models, strict=True):
        if role not in system:
            raise InputError(
                f"{job}: has no role '{role}', and these traces do; name the job that made them"
            )
        if model not in {"", system[role].model}:
            raise InputError(
                f"{job}: its {role} is the model {system[role].model}, and in these traces it is "
                f"{model}; name the job that made them"
            )
