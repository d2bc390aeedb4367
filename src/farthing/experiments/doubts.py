"""What speaks against trusting a bundle on some questions."""

from farthing.bundle.base import Bundle
from farthing.traces.arrays import TraceArrays
from farthing.traces.fingerprint import fingerprint
from farthing.traces.splits import Parts
from farthing.traces.system import System, changes

STRANGERS = (
    "the bundle was not trained on the training part of these traces (another file, seed or size): "
    "make sure that none of these questions trained it"
)

SAME_OPTIONS = "give the same --seed, --train, --calibrate and --test to every step"
AS_BEFORE = f"take other questions, or, on the command line, {SAME_OPTIONS}"


def doubts(bundle: Bundle, arrays: TraceArrays, parts: Parts) -> tuple[str, ...]:
    """Say what speaks against trusting a bundle on these questions."""
    unknown = "train" not in bundle.questions
    if unknown and fingerprint(arrays.take(parts.train)) != bundle.origin.fingerprint:
        return STRANGERS, *other_models(bundle, arrays.models)
    return other_models(bundle, arrays.models)


def other_system(bundle: Bundle, system: System | None) -> tuple[str, ...]:
    """Say so where calibration traces were made with something else than the training ones."""
    if bundle.origin.system is None or system is None:
        return ()
    found = changes(bundle.origin.system, system)
    differ = "these traces were not made as those before, and the promise is about these"
    return (f"{differ}; changed: {', '.join(found)}",) if found else ()


def other_models(bundle: Bundle, models: tuple[str, ...]) -> tuple[str, ...]:
    """Say so where the traces' models are not those of the bundle."""
    if models == bundle.origin.models:
        return ()
    theirs, ours = ", ".join(bundle.origin.models), ", ".join(models)
    return (f"the bundle was trained on the models {theirs}; these traces have {ours}",)
