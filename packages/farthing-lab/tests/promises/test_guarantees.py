"""One suite for every registered guarantee: it is said, it travels, and a lie in it is noticed."""

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing import plugins
from farthing.promises.agreeing import Agreeing, Checks, Judged, JudgeShare
from farthing.promises.answers import Answers
from farthing.promises.certificate import AskedOf, Certificate, Threshold
from farthing.promises.kinds.budget import Spending
from farthing.promises.kinds.escalated import PassedOn
from farthing.promises.kinds.groups import Grouped
from farthing.promises.paired import Paired
from farthing.promises.payload import Payload
from farthing.promises.statistics.fixed_sequence import Candidates
from farthing.promises.statistics.sampled_mean import Drawn, Sample
from farthing_lab.promises.online import OnlineThreshold
from farthing_lab.promises.weighted import Weighted

NAMES = plugins.names("guarantees")
MARK = "0" * 64
COMMON = set(Certificate.__struct_fields__) - {"promise", "requests"}
"""Evidence of distinct questions does not say how often each was asked."""
levels = st.integers(1, 9).map(lambda i: Fraction(i, 10))
given_whom = st.sampled_from(["all", "solvable"])


@dataclass(frozen=True)
class Asked:
    """Evidence, and what was asked for: the arguments of `certify` that a certificate repeats."""

    evidence: Any
    terms: dict[str, Any] = field(default_factory=dict)


def scores(rng: np.random.Generator, n: int) -> Any:
    found = rng.integers(0, 33, n) / 32
    found[rng.random(n) < 0.1] = np.inf
    return found


def menu(rng: np.random.Generator, n: int) -> tuple[Any, Any, Any]:
    """Return costs, right answers and the thresholds of a menu of three."""
    cost = np.sort(rng.integers(1, 100, (n, 3)), axis=1)
    return cost, rng.random((n, 3)) < [0.7, 0.9, 0.95], np.array([0.9, 0.5, 0.1])


Draw = Callable[[st.DataObject, np.random.Generator, int], Asked]


def by_group(draw: st.DataObject, rng: np.random.Generator, n: int) -> Asked:
    sample = Grouped(scores(rng, n), rng.integers(0, 3, n), ("law", "art", "physics"))
    return Asked(sample, {"alpha": draw.draw(levels), "population": draw.draw(given_whom)})


def sample(draw: st.DataObject, rng: np.random.Generator, n: int) -> Sample | None:
    if not draw.draw(st.booleans()):
        return None
    probability, judge = draw.draw(st.sampled_from([(0.5, "mini"), (1.0, None)]))
    predicted = np.where(rng.random((n, 3)) < 0.1, float(judge is not None), 0.0)
    drawn = rng.random(n) < probability
    return Sample(predicted, drawn, rng.permutation(n), probability, judge)


TWO = Candidates(np.array([0, 0, 1]), ("small", "large"), (Fraction(1, 4), Fraction(1, 2)))


def answered(draw: st.DataObject, rng: np.random.Generator, n: int) -> Answers:
    cost, right, kappas = menu(rng, n)
    given_at = np.logical_or.accumulate(rng.random((n, 3)) < 0.6, axis=1)
    thresholds, whose = (draw.draw(st.sampled_from([None, of])) for of in (kappas, TWO))
    return Answers(given_at, right, thresholds, kappas, whose, cost)


def answers(draw: st.DataObject, rng: np.random.Generator, n: int) -> Asked:
    evidence = replace(answered(draw, rng, n), sample=sample(draw, rng, n))
    return Asked(evidence, {"alpha": draw.draw(levels), "delta": draw.draw(levels)})


def passed_on(draw: st.DataObject, rng: np.random.Generator, n: int) -> Asked:
    evidence = PassedOn(answered(draw, rng, n), rng.random(n) < 0.9, "large")
    terms = ("alpha", "epsilon", "delta")
    return Asked(evidence, {name: draw.draw(levels) for name in terms})


def pairs(draw: st.DataObject, rng: np.random.Generator, n: int) -> Asked:
    cost, right, kappas = menu(rng, n)
    role = draw.draw(st.sampled_from([None, "guide"]))
    evidence = Paired(cost, right, rng.random(n) < 0.9, role, kappas, sample(draw, rng, n))
    return Asked(evidence, {"epsilon": draw.draw(levels), "delta": draw.draw(levels)})


def agreeing(draw: st.DataObject, rng: np.random.Generator, n: int) -> Asked:
    cost, same, kappas = menu(rng, n)
    evidence = Agreeing(cost, same, "gpt-4o", draw.draw(st.sampled_from([None, kappas])))
    terms: dict[str, Any] = {"epsilon": draw.draw(levels), "delta": draw.draw(levels)}
    if draw.draw(st.booleans()):
        evidence = replace(evidence, checks=Checks("mini", 120, draw.draw(st.integers(0, 9))))
        terms["share"] = SHARE
    return Asked(evidence, terms)


SHARE = JudgeShare(epsilon=Fraction(1, 40), delta=Fraction(1, 20))


DRAWS: dict[str, Draw] = {
    "agreement": agreeing,
    "split": lambda draw, rng, n: Asked(
        scores(rng, n), {"alpha": draw.draw(levels), "population": draw.draw(given_whom)}
    ),
    "pac": lambda draw, rng, n: Asked(
        scores(rng, n),
        {
            "alpha": draw.draw(levels),
            "delta": draw.draw(levels),
            "population": draw.draw(given_whom),
        },
    ),
    "groups": by_group,
    "online": lambda draw, rng, n: Asked(
        OnlineThreshold(kappa=float(rng.random()), step=0.5, updates=100 * n),
        {"alpha": draw.draw(levels)},
    ),
    "weighted": lambda draw, rng, n: Asked(
        Weighted(scores(rng, n), rng.integers(1, 9, n).astype(float), 9.0),
        {"alpha": draw.draw(levels)},
    ),
    "selective": answers,
    "escalated": passed_on,
    "parity": pairs,
    "budget": lambda draw, rng, n: Asked(
        Spending(menu(rng, n)[0], menu(rng, n)[1], 200, menu(rng, n)[2]),
        {"budget_nano": draw.draw(st.integers(1, 200)), "delta": draw.draw(levels)},
    ),
    "none": lambda draw, rng, n: Asked(float(rng.random()) if n > 1 else np.inf),
}


def record(name: str) -> Any:
    return plugins.load("guarantees", name)


def certify(name: str, asked: Asked, **more: Any) -> Certificate:
    made = import_module(record(name).__module__).certify
    found: Certificate = made(asked.evidence, fingerprint=MARK, **(asked.terms | more))
    return found


def drawn(name: str, draw: st.DataObject) -> tuple[Asked, Certificate]:
    seed, n = draw.draw(st.integers(0, 99)), draw.draw(st.integers(1, 60))
    asked = DRAWS[name](draw, np.random.default_rng(seed), n)
    signature = inspect.signature(import_module(record(name).__module__).certify)
    if "question_budget_nano" in signature.parameters and draw.draw(st.booleans()):
        return asked, certify(name, asked, question_budget_nano=500_000)
    return asked, certify(name, asked)


OTHERS: dict[type, Callable[[Any], Any]] = {
    Fraction: lambda _: Fraction(1, 3),
    float: lambda _: 0.123,
    int: lambda number: number + 1,
    dict: lambda groups: {**groups, "law": Threshold(0.123, 1, 9)},
    tuple: lambda several: (*several[1:], "Never."),
}


BY_NAME: dict[str, Any] = {
    "interval": (0.5, 0.75),
    "share": JudgeShare(epsilon=Fraction(1, 20), delta=Fraction(1, 30)),
    "sample": Drawn(3, 0.25, "another"),
    "judge": Judged(name="another", share=SHARE, checked=120, errors=0),
}


def other(name: str, value: Any) -> Any:
    """Return another value that the field could have."""
    if name == "population":
        return "solvable" if value == "all" else "all"
    if name in {"fingerprint", "reference", "candidate"}:
        return f"{value}x"
    if name == "asked_of":
        return AskedOf(models=("a", "b"), questions=2, recorded=3)
    if name in BY_NAME:
        return BY_NAME[name]
    return 1 if value is None else OTHERS[type(value)](value)


def with_field(certificate: Certificate, name: str, value: Any) -> Certificate:
    if name in COMMON:
        return msgspec.structs.replace(certificate, **{name: value})
    promise: Any = certificate.promise
    if name == "share":
        name, value = "judge", msgspec.structs.replace(promise.judge, share=value)
    changed = msgspec.structs.replace(promise, **{name: value})
    return msgspec.structs.replace(certificate, promise=changed)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_one_frozen_tagged_record_and_one_proof(name: str) -> None:
    assert name in DRAWS, "add how its evidence is drawn"
    config = record(name).__struct_config__
    assert (config.tag, config.tag_field, config.frozen) == (name, "kind", True)
    assert config.forbid_unknown_fields
    assert not COMMON & set(record(name).__struct_fields__)
    made = import_module(record(name).__module__).certify
    assert len(inspect.signature(made).parameters) <= 6


@pytest.mark.parametrize("name", NAMES)
@given(draw=st.data())
@settings(deadline=None, max_examples=10)
def test_it_is_said_and_travels(name: str, draw: st.DataObject) -> None:
    _, made = drawn(name, draw)
    assert isinstance(made.promise, Payload)
    for said in (made.sentence(), made.plain_language()):
        assert not said[0].islower()
        assert said.endswith(".")
        assert "\n" not in said
        assert ("budget of $0.0005" in said) == (made.question_budget_nano is not None)
    text = json.dumps(made.to_json(), allow_nan=False)
    assert Certificate.from_json(json.loads(text)) == made


@pytest.mark.parametrize("name", NAMES)
@given(draw=st.data())
@settings(deadline=None, max_examples=25)
def test_a_fresh_one_verifies_and_any_changed_field_is_noticed(
    name: str, draw: st.DataObject
) -> None:
    asked, made = drawn(name, draw)
    assert made.verify(asked.evidence, MARK) == []
    promise: Any = made.promise
    fields = msgspec.structs.asdict(promise)
    for changed in (COMMON | set(fields)) - set(asked.terms):
        value = getattr(made, changed) if changed in COMMON else fields[changed]
        false = with_field(made, changed, other(changed, value))
        assert false.verify(asked.evidence, MARK), changed


@pytest.mark.parametrize("name", NAMES)
@given(draw=st.data())
@settings(deadline=None, max_examples=25)
def test_what_was_asked_for_may_change_only_to_what_is_true_as_well(
    name: str, draw: st.DataObject
) -> None:
    asked, made = drawn(name, draw)
    for changed, value in asked.terms.items():
        another = {changed: other(changed, value)}
        claimed = with_field(made, changed, another[changed])
        budget = made.question_budget_nano
        more = another if budget is None else another | {"question_budget_nano": budget}
        true = certify(name, asked, **more)
        assert (claimed.verify(asked.evidence, MARK) == []) == (claimed == true)


@pytest.mark.parametrize("name", NAMES)
@given(draw=st.data())
@settings(deadline=None, max_examples=5)
def test_other_evidence_than_its_own_is_named(name: str, draw: st.DataObject) -> None:
    _, made = drawn(name, draw)
    said = made.verify("a text")
    kind, wanted = record(name).__name__, record(name).evidence.__name__
    assert said == [f"a {kind} is checked from its {wanted}, not from str"]


MINE = """
from typing import ClassVar
import msgspec
from farthing.promises.payload import Payload

class Mine(Payload, msgspec.Struct, frozen=True, tag_field="kind", tag="mine"):
    evidence: ClassVar[type] = list
    level: float
    promises = True

    def sentence(self, of):
        return f"Mine holds at {self.level}."

    def plain_language(self, of):
        return self.sentence(of)

    def recompute(self, evidence, of):
        return of
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A package that registers a guarantee of its own."""
    information = tmp_path / "mine-1.0.dist-info"
    information.mkdir()
    (tmp_path / "mine_guarantee.py").write_text(MINE)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(
        "[farthing.guarantees]\nmine = mine_guarantee:Mine\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return import_module("mine_guarantee").Mine


def test_a_guarantee_of_another_package_travels_alike(mine: Any) -> None:
    made = Certificate(promise=mine(level=0.5), kappa=0.25, n=7)
    assert made.sentence() == "Mine holds at 0.5."
    assert Certificate.from_json(made.to_json()) == made
