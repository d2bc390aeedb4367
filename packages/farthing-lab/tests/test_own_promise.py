"""A kind of promise of another package: one file and one entry point, and every command has it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.promises.certificate import Certificate, kinds_asked

FLOOR = '''
"""Right at least so often: the cheapest operating point of which that is proved."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import msgspec
import numpy as np

from farthing.promises.base import Promise
from farthing.promises.statistics.binomial import binomial_cdf
from farthing.promises.certificate import Certificate
from farthing.promises.figures import share_of
from farthing.promises.levels import exact_level
from farthing.promises.payload import Payload
from farthing.promises.statistics.fixed_sequence import cheapest_proven, point_kappa
from farthing.promises.texts import DELTA, REALISED, Column, Goal, PromiseOption, known, share


@dataclass(frozen=True)
class Floor(Promise):
    kind: ClassVar[str] = "floor"
    layout: ClassVar[str] = "grid"
    options: ClassVar = (
        PromiseOption("least", "the least share of right answers.", "probability",
                      "--least 0.7, how often the answer is right"),
        DELTA,
    )
    beside_metric: ClassVar[str] = REALISED

    least: Fraction = Fraction(7, 10)
    delta: Fraction = Fraction(1, 10)

    @classmethod
    def of_options(cls, alpha, given):
        return cls(**known(given, "least", "delta"))

    @property
    def line(self):
        return float(self.least)

    def evidence(self, observed, questions):
        return observed

    def point(self, evidence):
        wrong = (~evidence.correct).sum(axis=0)
        chance = 1 - float(self.least)
        p_values = np.array([binomial_cdf(int(w), len(evidence.correct), chance) for w in wrong])
        return cheapest_proven(p_values, exact_level(self.delta), evidence.spent)

    def prove(self, evidence, **about):
        point = self.point(evidence)
        return Certificate(
            promise=FloorPromise(least=exact_level(self.least), delta=self.delta, point=point),
            kappa=point_kappa(evidence.kappas, point),
            n=len(evidence.correct),
            **about,
        )

    def goal(self):
        level = share(self.line)
        return Goal(f"Floor of {level}", REALISED, "Accuracy", self.line, level, level, 0.0,
                    REALISED, of_alpha=False)

    def claim(self, *, alone=True):
        return f"Of 100 answers at least {100 * self.line:.0f} are right."

    def under(self):
        return f"With a floor of {share(self.line)},"

    def columns(self):
        return [Column(REALISED, "Right of all", "Floor", share, "share of right answers")]


class FloorPromise(Payload, msgspec.Struct, frozen=True, tag_field="kind", tag="floor"):
    evidence: ClassVar[type] = object
    least: Fraction
    delta: Fraction
    point: int | None = None

    @classmethod
    def asks(cls):
        return Floor

    def asked(self):
        return Floor(self.least, self.delta)

    @property
    def promises(self):
        return self.point is not None

    def sentence(self, of):
        return f"At least {float(self.least):g} of the answers are right, by {of.n} questions."

    def plain_language(self, of):
        return self.sentence(of)

    def recompute(self, evidence, of):
        return self.asked().prove(evidence, **of.about)

    def realised(self, of, questions):
        return share_of("right answers", of.best_correct, 1 - self.least)
'''


def recorded(n: int) -> list[dict[str, Any]]:
    """Return questions of which the small model has three of four right, and knows which."""
    rng = np.random.default_rng(0)
    made = []
    for i in range(n):
        hard = bool(rng.random() < 0.25)
        small = {"answer": "no" if hard else "yes", "confidence": 0.4 if hard else 0.9}
        calls = [
            {"round": 1, "role": "small", "model": "small", "cost_usd": 0.0001, **small},
            {"round": 1, "role": "large", "model": "large", "cost_usd": 0.001, "answer": "yes"},
        ]
        made.append({"id": f"q{i}", "independent": True, "gold": ["yes"], "calls": calls})
    return made


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that registers a promise of its own."""
    information = tmp_path / "floor-1.0.dist-info"
    information.mkdir()
    (tmp_path / "floor_promise.py").write_text(FLOOR)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: floor\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(
        "[farthing.guarantees]\nfloor = floor_promise:FloorPromise\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    kinds_asked.cache_clear()
    yield tmp_path
    kinds_asked.cache_clear()
    sys.modules.pop("floor_promise", None)


def test_it_is_recommended_for_certified_and_compared(package: Path) -> None:
    kind = kinds_asked()["floor"]
    assert kind is import_module("floor_promise").Floor
    asked = kind(least="0.7")
    traces = ft.from_records(recorded(400), name="mine")
    found = ft.recommend(traces, asked, reference="large")
    certificate = found.policy.certificate
    assert certificate is not None
    assert certificate.promises
    assert "At least 0.7 of the answers are right" in str(certificate)
    assert Certificate.from_json(certificate.to_json()) == certificate
    held = ft.compare(traces, ["always", "frugal-gpt"], promise=asked, splits=5)
    row = next(row for row in held.rows if row["policy"] == "always-small")
    assert row["kept"] is not None
    table = str(held)
    assert "Floor of 0.700" in table
    assert "Floor" in table.splitlines()[3] or "Floor" in table


def farthing(package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])
    program = "import sys; from farthing.cli.main import run; sys.argv[0] = 'farthing'; run()"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=package,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "120"},
    )


@pytest.mark.slow
def test_the_command_line_has_its_options(package: Path) -> None:
    lines = "\n".join(json.dumps(each) for each in recorded(400))
    (package / "runs.jsonl").write_text(lines + "\n")
    for command in ("calibrate", "compare", "recommend"):
        said = farthing(package, command, "--help").stdout
        assert "--least" in said
        assert "floor" in said
        assert "Floor: the least share of right" in said
    made = farthing(
        package, "recommend", "--traces", "runs.jsonl", "--promise", "floor", "--least", "0.7",
        "--reference", "large", "--out", "bundle",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert "At least 0.7 of the answers are right" in made.stdout
    lacks = farthing(
        package, "compare", "--traces", "runs.jsonl", "--out", "r", "--promise", "floor"
    )
    assert "--promise floor needs --least 0.7, how often the answer is right" in lacks.stderr
    useless = farthing(package, "recommend", "--traces", "runs.jsonl", "--least", "0.7")
    assert "--least means nothing to a promise of parity; give --epsilon" in useless.stderr
