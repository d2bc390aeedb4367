"""What a sweep has found so far, a line of JSON a training: a second run goes on from there."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from farthing.errors import InputError

Key = Mapping[str, Any]
"""Everything that a training's figures depend on."""
Figures = Mapping[str, float]


class Trials:
    """A file of finished trainings, each looked up by what it depends on.

    A last line that was cut off in mid-write is dropped: its training runs again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        text = path.read_bytes() if path.exists() else b""
        *whole, cut_off = text.split(b"\n")
        self._whole = len(text) - len(cut_off)
        self._found = dict(_read(path, number, line) for number, line in enumerate(whole, 1))

    def get(self, key: Key) -> Figures | None:
        """Return the figures of a training, or None where it was not finished yet."""
        return self._found.get(_text(key))

    def add(self, key: Key, figures: Figures) -> None:
        """Keep the figures of a training, at once."""
        if not self._found:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        known = {name: None if math.isnan(value) else value for name, value in figures.items()}
        line = json.dumps({"trial": dict(key), "figures": known}, ensure_ascii=False) + "\n"
        with self.path.open("ab") as file:
            file.truncate(self._whole)
            self._whole += file.write(line.encode())
        self._found[_text(key)] = figures


def _read(path: Path, number: int, line: bytes) -> tuple[str, Figures]:
    try:
        record = json.loads(line)
        figures = {
            name: math.nan if value is None else float(value)
            for name, value in record["figures"].items()
        }
        return _text(record["trial"]), figures
    except (ValueError, TypeError, KeyError, AttributeError):
        problem = "is no finished training of a sweep; name another folder, or remove that file"
        raise InputError(f"{path}, line {number}: {problem}") from None


def _text(key: Key) -> str:
    return json.dumps(key, sort_keys=True)
