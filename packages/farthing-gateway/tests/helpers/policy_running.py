"""A policy of two stub models with a proved bundle, for tests of a gateway that runs."""

import json
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from chat_server import Endpoint
from gateway_running import models, serve_section

from farthing.cli.main import _run as farthing

SYSTEM = "Say A or B."
POLICY = f"""
[policies.letters]
pool = ["small", "large"]
system = "{SYSTEM}"
task = "multiple_choice"
max_tokens = 50
bundle = "bundle"
answers_for = ["large"]
"""


def letter(messages: list[dict[str, str]]) -> str:
    """Answer as both models do: B where the question has an odd number."""
    number = int("".join(c for c in messages[-1]["content"] if c.isdecimal()) or 0)
    return f"The answer is {'B' if number % 2 else 'A'}."


def made_bundle(folder: Path, promise: str = "agreement") -> None:
    """Make a bundle of recorded answers, the cheap ones nearly always as the dear ones.

    It is made once in a process, and copied; what lies where it would be is really written over.
    """
    if (folder / "bundle").exists():
        assert _recommended(folder, promise, 0.985) == 0
    else:
        shutil.copytree(_made(promise).name, folder, dirs_exist_ok=True)


def unproved_bundle(folder: Path) -> None:
    """Make a bundle of answers that always differ: it asks `large` and promises nothing."""
    assert _recommended(folder, "agreement", 0.0) == 1


@cache
def _made(promise: str) -> TemporaryDirectory[str]:
    folder = TemporaryDirectory()
    assert _recommended(Path(folder.name), promise, 0.985) == 0
    return folder


def _recommended(folder: Path, promise: str, alike: float) -> int:
    generator = np.random.default_rng(0)
    lines = []
    for at in range(1_200):
        dear = "B" if at % 2 else "A"
        cheap = dear if generator.random() < alike else "C"
        calls = [
            _call("small", cheap, 1e-5),
            _call("large", dear, 1e-3),
        ]
        one = {"id": f"q{at}", "question": f"number {at}", "gold": [dear], "calls": calls}
        lines.append(json.dumps({**one, "task": "multiple_choice", "independent": True}))
    (folder / "traces.jsonl").write_text("\n".join(lines) + "\n")
    asked = ["recommend", "--traces", str(folder / "traces.jsonl"), "--promise", promise]
    return farthing([*asked, "--reference", "large", "--out", str(folder / "bundle")])


def _call(role: str, answer: str, usd: float) -> dict[str, Any]:
    return {
        "round": 1,
        "role": role,
        "model": f"{role}-2026",
        "answer": answer,
        "cost_usd": usd,
    }


def config(stub: Endpoint, bundle: Path, **serve: Any) -> str:
    """Return a configuration of one policy."""
    text = serve_section(**serve) + models(stub.url) + POLICY
    return text.replace('bundle = "bundle"', f"bundle = {json.dumps(str(bundle))}")
