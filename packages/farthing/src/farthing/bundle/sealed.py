"""The files of a bundle: arrays as safetensors, and JSON whose hashes reveal every change."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from farthing.errors import BundleError

Array = NDArray[Any]

FORMAT = "farthing policy bundle"
FORMAT_VERSION = 3
"""Version 2 marks questions by their grades as well, so that none would be known again."""
BODY = "bundle.json"
WEIGHTS = "weights.safetensors"
TRAINED = "trained"
"""The folder within that holds the trained policy, where a reference answers in its place."""


def sealed(folder: Path, arrays: Mapping[str, Array], body: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files that hold arrays and a body, by name; the same bytes for the same content.

    Args:
        folder: where they will be, for the messages.
        arrays: finite numbers, by name.
        body: JSON values; the format, the arrays' shapes and the hashes are added.
    """
    arrays = {name: _portable(folder, name, arrays[name]) for name in sorted(arrays)}
    weights = safetensors.save(arrays)
    whole = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        **body,
        "arrays": _shapes(arrays),
        "sha256": {WEIGHTS: _hash(weights)},
    }
    try:
        whole["sha256"] = {WEIGHTS: _hash(weights), BODY: _hash(_canonical(whole))}
        text = json.dumps(whole, indent=1, sort_keys=True, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError) as problem:
        raise BundleError(f"{folder}: the policy's settings are not JSON: {problem}") from None
    return {WEIGHTS: weights, BODY: text}


def unsealed(folder: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read the body and the arrays, and refuse what is not as it was written."""
    body = _read_body(folder)
    return body, _read_weights(folder, body)


def _read_body(folder: Path) -> dict[str, Any]:
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


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _canonical(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def check_replaceable(folder: Path) -> None:
    """Refuse a folder that holds anything but an older bundle."""
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
