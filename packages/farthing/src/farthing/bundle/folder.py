"""Write a bundle as a folder, and read it again."""

import base64
from pathlib import Path

import msgspec
import numpy as np

from farthing import __version__
from farthing.bundle.base import Bundle
from farthing.bundle.sealed import BODY, TRAINED, check_replaceable, sealed, unsealed
from farthing.errors import BundleError, CalibrationError
from farthing.methods import cards
from farthing.methods.base import Saveable
from farthing.process.replay import EMPTY_SETS
from farthing.process.value import PolicyValue
from farthing.promises.certificate import Certificate
from farthing.traces.atomic import write_folder
from farthing.traces.fingerprint import Marks
from farthing.traces.system import Origin

_UNUSABLE = (KeyError, IndexError, TypeError, ValueError, AttributeError, msgspec.MsgspecError)


def save(
    folder: str | Path,
    policy: Saveable,
    *,
    origin: Origin,
    kappa: float | None = None,
    certificate: Certificate | None = None,
    empty: str = "argmax",
) -> None:
    """Write a policy as a bundle that does not say which questions made it; see `write`.

    Args:
        folder: where to; an older bundle there is replaced, anything else is left alone.
        policy: the policy; a method that makes such ones is registered under `farthing.methods`.
        origin: what it was trained on (`origin_of`).
        kappa: its threshold, if it acts through one.
        certificate: what is promised at that threshold.
        empty: the mode of `replay.paths` that the threshold was computed in.
    """
    bundle = Bundle(
        policy=policy,
        kind=cards.name_of(policy),
        origin=origin,
        kappa=kappa,
        empty=empty,
        certificate=certificate,
        features=None,
        farthing_version=__version__,
    )
    write(folder, bundle)


def write(folder: str | Path, bundle: Bundle) -> None:
    """Write a bundle: the whole of it or nothing, and the same bytes for the same content.

    Args:
        folder: where to; an older bundle there is replaced, anything else is left alone.
        bundle: what ships; its class's name and this version are written, whatever it says.
    """
    folder = Path(folder)
    files = _files(folder, bundle)
    if bundle.trained is not None:
        kept = _files(folder, bundle.trained)
        files |= {f"{TRAINED}/{name}": content for name, content in kept.items()}
    if not folder.name:
        raise BundleError(f"{folder}: the bundle needs a folder of its own; name one")
    try:
        check_replaceable(folder)
        write_folder(folder, files)
    except OSError as error:
        raise BundleError(
            f"{folder}: cannot be written ({error.strerror or error}); name a folder that can be"
        ) from error


def holds(folder: Path, bundle: Bundle) -> bool:
    """Return whether a folder holds this very bundle, byte for byte."""
    try:
        return all(
            (folder / name).read_bytes() == content
            for name, content in _files(folder, bundle).items()
        )
    except OSError:
        return False


def check_nothing_is_lost(folder: Path) -> None:
    """Refuse a folder whose bundle promises something; one that proved nothing is no loss.

    Raises:
        BundleError: a proved bundle stands there.
    """
    if not (folder / BODY).exists():
        return
    certificate = load(folder).certificate
    if certificate is not None and certificate.promises:
        raise BundleError(
            f"{folder}: holds a proved bundle, whose promise would be lost; name another folder "
            "or remove that one first"
        )


def _files(folder: Path, bundle: Bundle) -> dict[str, bytes]:
    if not isinstance(bundle.policy, Saveable):
        raise BundleError(f"{folder}: the policy '{bundle.kind}' cannot be saved")
    kappa, certificate = bundle.kappa, bundle.certificate
    _check_threshold(folder, kappa, certificate, bundle.empty)
    arrays, settings = bundle.policy.to_state()
    body = {
        "farthing_version": __version__,
        "policy": {"kind": cards.name_of(bundle.policy), "settings": settings},
        "origin": msgspec.to_builtins(bundle.origin),
        "actions": list(bundle.origin.actions),
        "kappa": "inf" if kappa == np.inf else kappa,
        "empty": bundle.empty,
        "certificate": certificate and certificate.to_json(),
        "questions": {part: _packed(of) for part, of in bundle.questions.items()},
        "value": bundle.value and msgspec.to_builtins(bundle.value),
    }
    if bundle.looks > 1:
        body["looks"] = bundle.looks
    return sealed(folder, arrays, body)


def load(folder: str | Path) -> Bundle:
    """Read a bundle, and refuse one that is not what was written.

    One that is replaced meanwhile is read again, so that no two are mixed.
    """
    folder = Path(folder)
    while True:
        before = _identity(folder)
        try:
            bundle = _loaded(folder)
        except BundleError:
            if _identity(folder) == before:
                raise
        else:
            if _identity(folder) == before:
                return bundle


def _identity(folder: Path) -> tuple[int, int, int] | None:
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns  # which a renaming changes


def _loaded(folder: Path) -> Bundle:
    body, arrays = unsealed(folder)
    try:
        settings = body["policy"]["settings"]
        kind = body["policy"]["kind"]
        certificate = body["certificate"] and Certificate.from_json(body["certificate"])
        bundle = Bundle(
            policy=cards.policy_class(kind).from_state(arrays, settings),
            kind=kind,
            origin=msgspec.convert(body["origin"], Origin),
            kappa=None if body["kappa"] is None else float(body["kappa"]),
            empty=body["empty"],
            certificate=certificate,
            features=settings.get("features"),
            farthing_version=body["farthing_version"],
            questions={part: _unpacked(of) for part, of in body.get("questions", {}).items()},
            looks=int(body.get("looks", 1)),
            value=msgspec.convert(body.get("value"), PolicyValue | None),
            trained=load(folder / TRAINED) if (folder / TRAINED).is_dir() else None,
        )
    except CalibrationError as problem:
        raise BundleError(f"{folder / BODY}: {problem}") from None
    except _UNUSABLE as problem:
        raise BundleError(f"{folder / BODY}: the policy cannot be rebuilt: {problem!r}") from None
    _check_threshold(folder, bundle.kappa, bundle.certificate, bundle.empty)
    return bundle


def _check_threshold(
    folder: Path, kappa: float | None, certificate: Certificate | None, empty: str
) -> None:
    if empty not in EMPTY_SETS:
        raise BundleError(f"{folder}: empty is '{empty}'; use one of {', '.join(EMPTY_SETS)}")
    if kappa is not None and np.isnan(kappa):
        raise BundleError(f"{folder}: the threshold is not a number; calibrate again")
    if certificate is not None and certificate.kappa != kappa:
        raise BundleError(
            f"{folder}: the certificate is about kappa = {certificate.kappa}, "
            f"the bundle acts with {kappa}; calibrate again"
        )


def _packed(marks: Marks) -> str:
    return base64.b64encode(np.array(sorted(marks), dtype="<u8").tobytes()).decode()


def _unpacked(text: str) -> Marks:
    return frozenset(np.frombuffer(base64.b64decode(text), dtype="<u8").tolist())
