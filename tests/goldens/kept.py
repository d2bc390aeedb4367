"""What users keep, read back: the same lines for the code of before and for that of today.

`write.py` calls these to write the goldens, `test_goldens.py` to compare with them. Whatever stands
here must run with both, so it finds what has moved by entry points and commands.
"""

import contextlib
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from farthing.bundle.base import Bundle
from farthing.bundle.versions import digest_of
from farthing.cli.main import _run
from farthing.process.batch_replay import replay
from farthing.promises.agreeing import Agreeing, Checks, JudgeShare
from farthing.promises.answers import Answers
from farthing.promises.certificate import AskedOf, Certificate, registered
from farthing.promises.kinds.budget import Spending
from farthing.promises.kinds.escalated import PassedOn
from farthing.promises.kinds.groups import Grouped
from farthing.promises.paired import Paired
from farthing.promises.statistics.fixed_sequence import Candidates
from farthing.promises.statistics.sampled_mean import Sample
from farthing.recommendation import splits
from farthing.runtime.job import Job
from farthing.traces.arrays import TraceArrays
from farthing.traces.files import read_arrays, read_records
from farthing.traces.fingerprint import fingerprint, marks_of

HERE = Path(__file__).parent
MARK = "0" * 64
SIZES = {"talk": (40, 100, 20), "pool": (60, 150, 50), "plain": (60, 150, 50)}
"""Log to its questions that train, calibrate and test."""


def command(*arguments: str | Path) -> tuple[int, str]:
    """Run `farthing` in this process; return its exit code and what it printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        code = _run([str(one) for one in arguments])
    return code, printed.getvalue()


def sizes(log: str) -> tuple[str, ...]:
    """Return the options that divide a log."""
    names = ("--train", "--calibrate", "--test")
    return tuple(w for pair in zip(names, map(str, SIZES[log]), strict=True) for w in pair)


def plain(value: Any) -> Any:
    """Return any record as JSON values; the names of classes and modules are left out."""
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [
            plain(part) for part in (value if isinstance(value, list | tuple) else sorted(value))
        ]
    return value if isinstance(value, str | int | float | None) else str(value)


# Certificates and their evidence.


def _share(step: int, n: int, over: int = 97) -> Any:
    """Return [n] shares that look drawn and are the same everywhere."""
    return (np.arange(n) * step % over) / over


SCORES = np.where(_share(41, 120) > 0.95, np.inf, _share(37, 120))
COST = np.tile([1_000_000, 2_000_000, 9_000_000], (120, 1)) + np.arange(120)[:, None]
RIGHT = np.stack(
    [_share(step, 120) < most for step, most in ((31, 0.9), (43, 0.96), (59, 0.98))], 1
)
ROW = np.array([0.9, 0.5, 0.1])
GIVEN = np.logical_or.accumulate(np.stack([_share(s, 120) < 0.6 for s in (29, 53, 61)], 1), axis=1)
TWO = Candidates(np.array([0, 0, 1]), ("small", "large"), (Fraction(1, 4), Fraction(1, 2)))
SAMPLE = Sample(np.where(RIGHT, 0.0, 1.0), _share(67, 120) < 0.5, np.arange(120), 0.5, "mini")
ANSWERS = Answers(GIVEN, RIGHT, ROW, ROW, None, COST)
CHECKED = Agreeing(COST, RIGHT, "gpt-4o", ROW, checks=Checks("mini", 900, 1))
SHARE = JudgeShare(epsilon=Fraction(1, 40), delta=Fraction(1, 20))
SOME = AskedOf(models=("small", "large"), questions=120, recorded=200, missing="chance")

EVIDENCE: dict[str, tuple[Any, dict[str, Any]]] = {
    "split": (SCORES, {"alpha": "0.1"}),
    "split solvable": (SCORES, {"alpha": "1/3", "population": "solvable"}),
    "pac": (SCORES, {"alpha": "0.2", "delta": "0.1"}),
    "groups": (Grouped(SCORES, np.arange(120) // 50, ("law", "art", "physics")), {"alpha": "0.2"}),
    "online": ({"kappa": 0.25, "step": 0.5, "updates": 20_000}, {"alpha": "0.1"}),
    "weighted": (
        {"critical": SCORES, "weights": _share(71, 120) + 0.5, "largest": 2.0},
        {"alpha": "0.2"},
    ),
    "selective": (ANSWERS, {"alpha": "0.2", "delta": "0.1"}),
    "selective of two": (
        Answers(GIVEN, RIGHT, None, ROW, TWO, COST),
        {"alpha": "0.2", "delta": "0.1"},
    ),
    "selective of a sample": (
        Answers(GIVEN, RIGHT, ROW, ROW, None, COST, sample=SAMPLE),
        {"alpha": "0.3", "delta": "0.1"},
    ),
    "escalated": (
        PassedOn(ANSWERS, _share(73, 120) < 0.9, "large"),
        {"alpha": "0.2", "epsilon": "0.15", "delta": "0.1"},
    ),
    "parity": (
        Paired(COST, RIGHT, RIGHT[:, 2], "guide", ROW, None),
        {"epsilon": "0.1", "delta": "0.1"},
    ),
    "agreement": (Agreeing(COST, RIGHT, "gpt-4o", ROW), {"epsilon": "0.2", "delta": "0.1"}),
    "agreement by a judge": (CHECKED, {"epsilon": "0.2", "delta": "0.15", "share": SHARE}),
    "budget": (Spending(COST, RIGHT, 9_000_200, ROW), {"budget_nano": 4_000_000, "delta": "0.1"}),
    "none": (0.4, {}),
}
"""Name, which begins with its kind, to evidence and what was asked for."""


def evidence_of(name: str) -> Any:
    """Return the evidence of a certificate, in the record that its kind reads."""
    given, _ = EVIDENCE[name]
    if not isinstance(given, dict):
        return given
    record: Any = registered(name).evidence
    return record(**given)


def certified(name: str) -> Certificate:
    """Prove a promise on its evidence, by the code that is installed."""
    _, terms = EVIDENCE[name]
    kind = name.split(maxsplit=1)[0]
    certify = import_module(registered(kind).__module__).certify
    found: Certificate = certify(evidence_of(name), fingerprint=MARK, **terms)
    return found.of_questions(SOME) if name == "split solvable" else found


# Bundles.


def played(log: str, folder: Path, bundle: Bundle) -> TraceArrays:
    """Return new questions as a bundle plays them."""
    return splits.as_played(folder, bundle, read_arrays(HERE / f"{log}-new.jsonl.gz"))


def decided(log: str, folder: Path, bundle: Bundle) -> dict[str, Any]:
    """Return what a bundle does with new questions at its threshold and at two others."""
    found = replay(bundle.policy, played(log, folder, bundle), bundle.empty)
    acted = {}
    for kappa in (bundle.kappa if bundle.kappa is not None else 0.5, 0.2, 0.8):
        done = found.act(min(kappa, 1.0))
        columns = {"length": done.length, "set_size": done.set_size, "right": done.best_correct * 1}
        columns |= {"in_set": done.in_set * 1, "cost_nano": done.cost_nano}
        acted[f"{kappa:.6f}"] = {name: " ".join(map(str, of)) for name, of in columns.items()}
    return acted


def checked(log: str, folder: Path) -> dict[str, Any]:
    """Return what `farthing check` says of a bundle and new questions."""
    files = ("--traces", HERE / f"{log}.jsonl.gz", "--new", HERE / f"{log}-new.jsonl.gz")
    code, said = command("check", "--bundle", folder, *files, *sizes(log), "--json")
    return {"code": code, "said": json.loads(said) if said else None}


def bundle_facts(log: str, folder: Path, bundle: Bundle) -> dict[str, Any]:
    """Return what is known of a bundle, apart from its bytes."""
    return {
        "log": log,
        "digest": digest_of(folder),
        "method": bundle.kind,
        "kappa": "inf" if bundle.kappa == np.inf else bundle.kappa,
        "promise": bundle.certificate and bundle.certificate.to_json()["promise"]["kind"],
        "sentence": bundle.certificate and bundle.certificate.sentence(),
        "refuted": bundle.certificate.refuted if bundle.certificate else None,
        "reference": bundle.reference,
        "check": checked(log, folder),
        "decided": decided(log, folder, bundle),
    }


# Logs.


def log_facts(path: Path) -> dict[str, Any]:
    """Return what a log or a store holds."""
    records = read_records(path)
    arrays = read_arrays(path)
    return {
        "fingerprint": fingerprint(arrays),
        "marks": sorted(marks_of(arrays)),
        "questions": msgspec.to_builtins(records),
    }


# Settings.


def without(folder: Path) -> Callable[[Any], Any]:
    """Return what takes the place of a folder out of JSON values."""

    def placed(value: Any) -> Any:
        text = json.dumps(value, default=str).replace(str(folder), "HERE")
        return json.loads(text)

    return placed


def job_facts(job: Job) -> dict[str, Any]:
    """Return what reading a job gives."""
    return {
        "section": plain(job.section),
        "models": plain(job.models),
        "system": plain(job.system()),
    }
