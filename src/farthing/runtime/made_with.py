"""What is known of the system behind recorded traces."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from farthing.errors import InputError
from farthing.runtime.job import read_job
from farthing.traces.arrays import TraceArrays
from farthing.traces.files import STORES
from farthing.traces.store import Store
from farthing.traces.system import System, changes


@dataclass(frozen=True)
class Behind:
    """What is known of the system behind some traces."""

    system: System | None
    note: str = ""
    """Why it is not known, and what follows."""


def made_with(path: Path, arrays: TraceArrays, job: Path | None = None) -> Behind:
    """Return what traces were made with, as their store or else a job says.

    Args:
        path: the file of the traces.
        arrays: the traces.
        job: the configuration of the job that made them, where they do not say.

    Raises:
        InputError: the job cannot have made them, or its file cannot be read.
    """
    declared = None if job is None else read_job(job).system()
    if job is not None and declared is not None:
        _check_declared(job, declared, arrays)
    recorded: list[System | None] = [None]
    if path.suffix in STORES:
        with Store.read(path) as store:
            recorded = store.systems()
    return _behind(path, recorded, job, declared)


def _behind(
    traces: Path, recorded: Sequence[System | None], job: Path | None, declared: System | None
) -> Behind:
    """Return the one system that traces were made with, if there is one.

    Args:
        traces: their file.
        recorded: every system that the file tells of, None for traces of which it tells nothing.
        job: the job that is said to have made them.
        declared: its system.

    Raises:
        InputError: what is said is not what was recorded.
    """
    known = [system for system in recorded if system is not None]
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
    if recorded == known and known:
        return Behind(known[0])
    return Behind(
        None,
        f"{traces} does not say what all of it was made with, so a changed prompt, parameter or "
        "price goes unnoticed: name its job with --job",
    )


def _check_declared(job: Path, system: System, traces: TraceArrays) -> None:
    """Refuse a job that cannot have made some traces.

    Raises:
        InputError: a role is missing, or its model is another.
    """
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
