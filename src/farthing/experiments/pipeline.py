"""One policy: train it and calibrate it, each on its own questions; `measuring` evaluates it.

The three steps work in turn on one file. Under the same seed and sizes they divide it alike, so
that no question is used twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from msgspec import structs

from farthing import bundle as bundles
from farthing.bundle import Bundle, origin_of
from farthing.calibration.base import Certificate, Given
from farthing.calibration.certificate import (
    certify_groups,
    certify_nothing,
    certify_online,
    certify_pac,
    certify_split,
)
from farthing.calibration.online import OnlineThreshold, run_online
from farthing.errors import CalibrationError, InputError, UnknownNameError
from farthing.experiments.base import Candidate
from farthing.experiments.candidates import candidates
from farthing.experiments.promises import Asked, Part, Promised, Shift, promise
from farthing.experiments.run import fit
from farthing.methods.base import Dataset, Fitted, Progress, Saveable, Silent, Space
from farthing.methods.selective.policy import as_trained
from farthing.process.base import Policy
from farthing.process.replayed import replay
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.assemble import fingerprint
from farthing.traces.question_hashes import Marks, marks
from farthing.traces.splits import Divisible, Parts, fixed_parts
from farthing.traces.system import System, changes

Method = Literal["split", "pac", "groups", "online"]
"""Which promise a calibration makes: on average over draws, with confidence 1 - delta, within each
group, or along the stream of its questions."""
Sizes = Mapping[str, int | None]
"""Questions to `train`, `calibrate` and `test`; what is not given is its share."""

STRANGERS = (
    "the bundle was not trained on the training part of these traces (another file, seed or size): "
    "make sure that none of these questions trained it"
)

AS_BEFORE = (
    "give the same --seed, --train, --calibrate and --test to every step, or other questions"
)
NO_MARKS: Marks = frozenset()


@dataclass(frozen=True)
class Trained:
    """What `train` did."""

    candidate: Candidate
    fitted: Fitted
    sizes: Mapping[str, int]
    """Questions in each part."""


@dataclass(frozen=True)
class Calibrated:
    """What `calibrate` did."""

    certificate: Certificate
    sizes: Mapping[str, int]
    notes: tuple[str, ...]
    """What to doubt."""


def train(
    setting: Dataset,
    name: str,
    alpha: Fraction,
    folder: str | Path,
    *,
    seed: int = 0,
    sizes: Sizes | None = None,
    progress: Progress | None = None,
    system: System | None = None,
) -> Trained:
    """Train one policy on the training part and save it as a bundle that promises nothing yet.

    After Ctrl-C the bundle holds what there is, and `fitted.stopped_early` says so. The same seed
    gives the same bundle, byte for byte.

    Args:
        setting: the questions; a pool of models is played as a cascade.
        name: a candidate's, such as `ccpo` or `fixed-2`.
        alpha: the share of misses to train for.
        folder: where the bundle goes.
        seed: of the division and of the training.
        sizes: of the parts.
        progress: is told how far the training is.
        system: what the traces were made with; None where nobody knows.

    Raises:
        UnknownNameError: no policy has that name.
        InputError: the policy cannot run on these traces, or cannot be saved.
        TooFewTracesError: there are fewer questions than the sizes ask for.
        BundleError: the folder holds something else.
    """
    candidate = _only(candidates(setting, [name]))
    if candidate.learner is None:
        raise InputError(f"the policy '{candidate.name}' cannot run: {candidate.note}")
    arrays = setting.arranged(candidate.method.space)
    parts = divided(arrays, seed, sizes)
    questions = arrays.take(parts.train)
    fitted = fit(candidate.learner, questions, alpha, seed, progress or Silent())
    if not isinstance(fitted.policy, Saveable):
        raise InputError(f"the policy '{candidate.name}' cannot be saved; compare it instead")
    origin = origin_of(questions, fingerprint(questions), system)
    kappa = None if candidate.calibration == "none" else fitted.kappa
    bundles.save(
        folder,
        fitted.policy,
        origin=origin,
        kappa=kappa,
        certificate=_no_promise(kappa, origin.fingerprint),
        empty=candidate.empty,
        questions={"train": marks(questions)},
    )
    return Trained(candidate, fitted, sizes_of(parts))


def calibrate(
    folder: str | Path,
    traces: TraceArrays,
    alpha: Fraction,
    *,
    method: Method = "split",
    delta: Fraction | None = None,
    given: Given = "all",
    seed: int = 0,
    sizes: Sizes | None = None,
    system: System | None = None,
) -> Calibrated:
    """Set a bundle's threshold on the calibration part, certify it, and save the bundle.

    Any policy's scores can be thresholded; one that acted by lot acts through its threshold then.

    Args:
        folder: the bundle.
        traces: the questions, of the kind that it was trained on.
        alpha: the promised share of misses.
        method: which promise.
        delta: how often a PAC promise may fail; for `pac` alone.
        given: which questions the promise is about.
        seed: as in `train`.
        sizes: as in `train`.
        system: as in `train`; the bundle holds it from now on, as the promise is about it.

    Raises:
        InputError: the traces have other roles or rounds than the bundle's, or lack the groups
            or the delta that the method needs.
        TooFewTracesError: there are fewer questions than the sizes ask for.
        BundleError: the folder is no bundle.
    """
    bundle, arrays, parts = opened(folder, traces, seed, sizes)
    if method not in get_args(Method):
        raise UnknownNameError("method", method, get_args(Method))
    if delta is not None and method != "pac":
        raise InputError(f"delta goes with the method pac, and not with {method}; leave it out")
    part = arrays.take(parts.calibrate)
    _check_held_out(folder, bundle, part)
    policy, empty = as_trained(bundle.policy, bundle.empty)
    critical = replay(policy, part, empty).critical
    try:
        certificate = _certify(method, critical, part, alpha=alpha, delta=delta, given=given)
    except CalibrationError as problem:
        raise InputError(f"cannot calibrate: {problem}") from None
    _keep(folder, bundle, part, Promised(certificate, policy, empty), system)
    notes = (*doubts(bundle, arrays, parts), *_other_system(bundle, system))
    return Calibrated(certificate, sizes_of(parts), notes)


def calibrate_for(
    folder: str | Path,
    traces: TraceArrays,
    asked: Asked,
    *,
    seed: int = 0,
    sizes: Sizes | None = None,
    system: System | None = None,
) -> Calibrated:
    """Set a bundle's threshold so that it keeps another promise, and save the bundle.

    Where nothing is proved the certificate says so and the bundle is left as it was: no threshold
    could carry the promise. Arguments and what is raised are as in `calibrate` and `promise`.
    """
    bundle, arrays, parts = opened(folder, traces, seed, sizes)
    if isinstance(asked, Shift):
        asked = replace(asked, target=laid_out(folder, bundle, asked.target))
    lay_out, prove = (
        Part(traces.take(rows), arrays.take(rows)) for rows in (parts.train, parts.calibrate)
    )
    _check_held_out(folder, bundle, prove.played)
    try:
        promised = promise(asked, bundle.policy, lay_out, prove, bundle.empty)
    except CalibrationError as problem:
        raise InputError(f"cannot calibrate: {problem}") from None
    if promised.certificate.promises:
        _keep(folder, bundle, prove.played, promised, system)
    notes = (*doubts(bundle, arrays, parts), *_other_system(bundle, system))
    return Calibrated(promised.certificate, sizes_of(parts), notes)


def _only(found: list[Candidate]) -> Candidate:
    if len(found) != 1:
        names = ", ".join(candidate.name for candidate in found) or "none that can run here"
        raise InputError(f"name one policy: {names}")
    return found[0]


def divided(arrays: Divisible, seed: int, sizes: Sizes | None) -> Parts:
    """Return the parts that every step works on, under the same seed and sizes."""
    return fixed_parts(arrays, np.random.default_rng(seed), **(sizes or {}))


def sizes_of(parts: Parts) -> dict[str, int]:
    """Return how many questions each part has."""
    return {"train": len(parts.train), "calibrate": len(parts.calibrate), "test": len(parts.test)}


def _no_promise(kappa: float | None, mark: str) -> Certificate | None:
    return None if kappa is None else certify_nothing(kappa, fingerprint=mark)


def _saveable(policy: Policy, kind: str) -> Saveable:
    if not isinstance(policy, Saveable):
        raise InputError(f"the policy '{kind}' cannot be saved")
    return policy


def opened(
    folder: str | Path, traces: TraceArrays, seed: int, sizes: Sizes | None
) -> tuple[Bundle, TraceArrays, Parts]:
    """Load a bundle and lay the traces out for it."""
    bundle = bundles.load(folder)
    arrays = laid_out(folder, bundle, traces)
    return bundle, arrays, divided(arrays, seed, sizes)


def laid_out(folder: str | Path, bundle: Bundle, traces: TraceArrays) -> TraceArrays:
    """Return traces as the bundle plays them; raise InputError where it cannot."""
    space: Space = "pool" if bundle.origin.is_pool else "rounds"
    arrays = Dataset("", traces).arranged(space)
    check_kind(folder, bundle, arrays)
    return arrays


def check_kind(folder: str | Path, bundle: Bundle, arrays: TraceArrays) -> None:
    """Refuse traces, as they are played, of other roles or rounds than a bundle's."""
    theirs, ours = bundle.origin, (arrays.roles, arrays.horizon)
    if (theirs.roles, theirs.horizon) != ours:
        raise InputError(
            f"{folder}: the policy was trained for {_kind(theirs.roles, theirs.horizon)}, these "
            f"traces have {_kind(*ours)}; use traces of the same kind, or train on these"
        )


def _check_held_out(folder: str | Path, bundle: Bundle, part: TraceArrays) -> None:
    if trained := len(marks(part) & bundle.questions.get("train", NO_MARKS)):
        raise InputError(
            f"{folder}: {trained:,} of the {len(part):,} calibration questions trained the policy, "
            f"so nothing could be promised; {AS_BEFORE}"
        )


def _keep(
    folder: str | Path,
    bundle: Bundle,
    part: TraceArrays,
    promised: Promised,
    system: System | None,
) -> None:
    """Save the bundle with a promise that was calibrated on a part, and what that was made with."""
    bundles.save(
        folder,
        _saveable(promised.policy, bundle.kind),
        origin=structs.replace(bundle.origin, system=system),
        kappa=promised.certificate.kappa,
        certificate=promised.certificate,
        empty=promised.empty,
        questions={**bundle.questions, "calibrate": marks(part)},
    )


def _kind(roles: tuple[str, ...], horizon: int) -> str:
    return f"{horizon} rounds of {' and '.join(roles)}"


def _certify(
    method: Method,
    critical: FloatArray,
    part: TraceArrays,
    *,
    alpha: Fraction,
    delta: Fraction | None,
    given: Given,
) -> Certificate:
    mark = fingerprint(part)
    if method == "split":
        return certify_split(critical, alpha, fingerprint=mark, given=given)
    if method == "pac":
        if delta is None:
            raise InputError("a PAC promise needs a delta, the share of failures allowed; try 0.1")
        return certify_pac(critical, alpha, delta, fingerprint=mark, given=given)
    if method == "groups":
        group = part.group.astype(np.int64)
        return certify_groups(
            critical, group, part.group_names, alpha, fingerprint=mark, given=given
        )
    if given != "all":
        raise InputError("an online promise is about all questions; leave `solvable` out")
    kappas = run_online(critical, alpha)
    state = OnlineThreshold(kappa=float(kappas[-1]), updates=len(kappas) - 1)
    return certify_online(state, alpha, fingerprint=mark)


def doubts(bundle: Bundle, arrays: TraceArrays, parts: Parts) -> tuple[str, ...]:
    """Say what speaks against trusting a bundle on these questions."""
    unknown = "train" not in bundle.questions
    if unknown and fingerprint(arrays.take(parts.train)) != bundle.origin.fingerprint:
        return STRANGERS, *other_models(bundle, arrays.models)
    return other_models(bundle, arrays.models)


def _other_system(bundle: Bundle, system: System | None) -> tuple[str, ...]:
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
