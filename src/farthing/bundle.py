"""What ships: a folder with a policy's weights and everything needed to use them honestly.

    bundle/
    ├── weights.safetensors   the policy's arrays
    ├── bundle.json           what the policy is, its threshold, its certificate, its origin
    └── trained/              the trained policy, where a reference answers in its place

Nothing in it can run code: arrays are safetensors, the policy's class is looked up by its
registered name, and neither torch nor scikit-learn is needed to load. The hashes in `bundle.json`
reveal damage and edits; they are no signature, so take bundles from people you trust.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from farthing import __version__
from farthing.calibration.base import Certificate
from farthing.calibration.guarantees.agreement import AgreementPromise
from farthing.calibration.guarantees.parity import ParityPromise
from farthing.errors import BundleError, CalibrationError
from farthing.methods import cards
from farthing.methods.base import Saveable
from farthing.process.base import Policy
from farthing.process.replay import EMPTY_SETS
from farthing.process.value import Value
from farthing.traces.atomic_folder import write_folder
from farthing.traces.origin import Origin
from farthing.traces.question_hashes import Marks

Array = NDArray[Any]

FORMAT = "farthing policy bundle"
FORMAT_VERSION = 3
"""Version 2 marks questions by their grades as well, so that none would be known again."""
BODY = "bundle.json"
WEIGHTS = "weights.safetensors"
TRAINED = "trained"
"""The folder within that holds the trained policy, where a reference answers in its place."""

_UNUSABLE = (KeyError, IndexError, TypeError, ValueError, AttributeError, msgspec.MsgspecError)


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A policy, ready to use, and all that is known about it."""

    policy: Policy
    kind: str
    """The name of a method that makes such policies."""
    origin: Origin
    kappa: float | None
    """The threshold; None for a policy whose actions are sampled."""
    empty: str
    """Whether sets may be empty (`allow`) or hold the likeliest action (`argmax`)."""
    certificate: Certificate | None
    """What is promised at that threshold."""
    features: Mapping[str, Any] | None
    """What the policy sees of a round; None where it reads no features."""
    farthing_version: str
    """The version that wrote the bundle."""
    questions: Mapping[str, Marks] = {}
    """`train`, `calibrate` and, of a recommendation, `choose` to the marks of the questions that
    did it; empty where unknown."""
    value: Value | None = None
    """What it costs and gets right beside the reference, on the calibration questions or, of a
    recommendation, on those that only measured it; None before calibration, and in bundles that do
    not say."""
    trained: "Bundle | None" = None
    """The policy as it was trained, where a reference answers in its place: see `fallback`."""

    def reads(self, signal: str) -> bool:
        """Return whether the policy decides by a recorded number, as far as its settings say."""
        if not isinstance(self.policy, Saveable):
            return False
        return _mentions(self.policy.to_state()[1], signal)

    @property
    def reference(self) -> str | None:
        """The single model that it is held against: that of its parity, or of its training."""
        match self.certificate and self.certificate.promise:
            case ParityPromise(reference=str(named)) | AgreementPromise(reference=named):
                return named
        return self.origin.reference


def _mentions(value: Any, name: str) -> bool:
    if isinstance(value, Mapping):
        return any(_mentions(part, name) for part in value.values())
    if isinstance(value, list | tuple):
        return any(_mentions(part, name) for part in value)
    return isinstance(value, str) and name in value


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

    Raises:
        BundleError, UnknownNameError: as `write`.
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

    Raises:
        BundleError: the folder holds something else, the policy cannot be saved, an array is not
            finite, the settings are not JSON, or the certificate is about another threshold.
        UnknownNameError: the policy's class is not registered.
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


def _files(folder: Path, bundle: Bundle) -> dict[str, bytes]:
    """Return the files of a bundle by name."""
    if not isinstance(bundle.policy, Saveable):
        raise BundleError(f"{folder}: the policy '{bundle.kind}' cannot be saved")
    kappa, certificate = bundle.kappa, bundle.certificate
    _check_threshold(folder, kappa, certificate, bundle.empty)
    arrays, settings = bundle.policy.to_state()
    arrays = {name: _portable(folder, name, arrays[name]) for name in sorted(arrays)}
    weights = safetensors.save(arrays)
    body = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "farthing_version": __version__,
        "policy": {"kind": cards.name_of(bundle.policy), "settings": settings},
        "arrays": _shapes(arrays),
        "origin": msgspec.to_builtins(bundle.origin),
        "actions": list(bundle.origin.actions),
        "kappa": "inf" if kappa == np.inf else kappa,
        "empty": bundle.empty,
        "certificate": certificate and certificate.to_json(),
        "questions": {part: _packed(of) for part, of in bundle.questions.items()},
        "value": bundle.value and msgspec.to_builtins(bundle.value),
        "sha256": {WEIGHTS: _hash(weights)},
    }
    try:
        body["sha256"] = {WEIGHTS: _hash(weights), BODY: _hash(_canonical(body))}
        text = json.dumps(body, indent=1, sort_keys=True, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError) as problem:
        raise BundleError(f"{folder}: the policy's settings are not JSON: {problem}") from None
    return {WEIGHTS: weights, BODY: text}


def load(folder: str | Path) -> Bundle:
    """Read a bundle, and refuse one that is not what was written.

    Raises:
        BundleError: it is no bundle, was changed or cut short, is of another format, or holds
            arrays that are not finite; the message names the file.
        UnknownNameError: the policy's class is not registered here.
    """
    folder = Path(folder)
    body = _read_body(folder)
    arrays = _read_weights(folder, body)
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
            value=msgspec.convert(body.get("value"), Value | None),
            trained=load(folder / TRAINED) if (folder / TRAINED).is_dir() else None,
        )
    except CalibrationError as problem:
        raise BundleError(f"{folder / BODY}: {problem}") from None
    except _UNUSABLE as problem:
        raise BundleError(f"{folder / BODY}: the policy cannot be rebuilt: {problem!r}") from None
    _check_threshold(folder, bundle.kappa, bundle.certificate, bundle.empty)
    return bundle


def _read_body(folder: Path) -> dict[str, Any]:
    """Read `bundle.json` and check that it is ours, of a known format, and unchanged."""
    path = folder / BODY
    try:
        body = _parse(path)
    except FileNotFoundError:
        what = f"has no {BODY}" if folder.is_dir() else "does not exist"
        raise BundleError(f"{folder} is not a policy bundle: it {what}") from None
    except OSError:
        raise BundleError(f"{folder} is not a policy bundle: it has no readable {BODY}") from None
    except (ValueError, RecursionError):
        raise BundleError(f"{path} is damaged: it is not JSON; save the bundle again") from None
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise BundleError(f"{folder} is not a policy bundle: {BODY} is not Farthing's")
    version = body.get("format_version")
    if version != FORMAT_VERSION:
        older = isinstance(version, int) and version < FORMAT_VERSION
        remedy = "train and calibrate again with this version" if older else "update Farthing"
        raise BundleError(
            f"{path} has format version {version}, this Farthing reads {FORMAT_VERSION}; {remedy}"
        )
    hashes = body.get("sha256")
    if not isinstance(hashes, dict) or hashes.pop(BODY, None) != _hash(_canonical(body)):
        raise BundleError(f"{path} was changed after it was saved; save the bundle again")
    return body


def _read_weights(folder: Path, body: Mapping[str, Any]) -> dict[str, Array]:
    path = folder / WEIGHTS
    try:
        content = path.read_bytes()
    except OSError:
        raise BundleError(f"{folder} is incomplete: it has no readable {WEIGHTS}") from None
    if _hash(content) != body["sha256"].get(WEIGHTS):
        raise BundleError(f"{path} was changed after it was saved; save the bundle again")
    try:
        arrays: dict[str, Array] = safetensors.load(content)
    except SafetensorError as problem:
        raise BundleError(f"{path} is not safetensors: {problem}") from None
    if _shapes(arrays) != body.get("arrays"):
        raise BundleError(f"{path} holds other arrays or shapes than {BODY} says")
    return {name: _portable(folder, name, value) for name, value in arrays.items()}


def _portable(folder: Path, name: str, value: Array) -> Array:
    """Return a finite array of numbers in C order and this machine's byte order."""
    array = np.array(value, order="C")
    if array.dtype.kind not in "fiub":
        raise BundleError(f"{folder}: the policy's array '{name}' holds {array.dtype}, not numbers")
    if not np.isfinite(array).all():
        raise BundleError(f"{folder}: the policy's array '{name}' holds NaN or inf; train it again")
    return array.astype(array.dtype.newbyteorder("="))


def _shapes(arrays: Mapping[str, Array]) -> dict[str, Any]:
    return {name: {"dtype": str(a.dtype), "shape": list(a.shape)} for name, a in arrays.items()}


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


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _canonical(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def check_replaceable(folder: Path) -> None:
    """Refuse a folder that is not a bundle's own.

    Raises:
        BundleError: it holds something else.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not folder.is_dir():
        raise BundleError(f"{folder} is a file; name a folder for the bundle")
    others = sorted({path.name for path in folder.iterdir()} - {BODY, WEIGHTS, TRAINED})
    if others or not _is_ours(folder / BODY):
        what = f"holds {', '.join(others[:3])}" if others else "is not a policy bundle"
        raise BundleError(f"{folder} {what}; name a new or empty folder for the bundle")


def _is_ours(path: Path) -> bool:
    try:
        body = _parse(path)
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(body, dict) and body.get("format") == FORMAT


def _parse(path: Path) -> Any:
    """Read strict JSON, which has no NaN and no Infinity."""
    return json.loads(path.read_bytes(), parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
