"""A promise fails as rarely as it says where each question was asked five times."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from made_up_pool import asked_again, questions, unknown
from question_parts import proof_of
from scipy.stats import binom

import farthing as ft
from farthing.bundle.base import Bundle
from farthing.promises.base import Per, Promise
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.coverage import Coverage
from farthing.promises.kinds.parity import Parity
from farthing.recommendation import splits
from farthing.recommendation.played import PlayedPolicy, Questions
from farthing.recommendation.promised_grade import read_for
from farthing.traces.arrays import RIGHT, TraceArrays
from farthing.traces.base import Call, Trace
from farthing.traces.copies import contents_of

DELTA = 0.1
DRAWS, QUESTIONS = 200, 120


def some(world: TraceArrays, seed: int) -> TraceArrays:
    """Return questions drawn from a world, each of them asked five times."""
    rows = np.random.default_rng(seed).integers(0, len(world), QUESTIONS)
    return asked_again(world.take(rows))


WORDINGS: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: f"{text} ",
    str.upper,
    str.title,
    lambda text: text.removesuffix("?"),
    lambda text: text.replace(" ", "  "),
    lambda text: text.replace(" ", "\u00a0"),
    lambda text: f"\u201c{text}\u201d",
    lambda text: f"\n{text}!",
    lambda text: text.replace("W", "\uff37"),
)
WORDED = 60


def in_wordings(world: TraceArrays, seed: int, *, typed: bool) -> TraceArrays:
    """Return 60 questions in ten wordings each, with other gold, as records are read.

    `typed`: whether each wording is a question of its own.
    """
    rows = np.random.default_rng(seed).integers(0, len(world), WORDED)
    calls = [Call(round=1, role="small")]
    texts = [worded(f"Who wrote volume {i}?") for worded in WORDINGS for i in range(WORDED)]
    marks = contents_of(
        Trace(id="q", question=text, gold=[f"gold {i}"], calls=calls)
        for i, text in enumerate(texts)
    )
    assert len(set(texts)) == len(marks) == 10 * WORDED
    drawn = world.take(np.tile(rows, len(WORDINGS)))
    ids = np.array([f"r{i}" for i in range(len(texts))])
    return replace(
        drawn, ids=ids, content=np.arange(1, len(ids) + 1, dtype=np.uint64) if typed else marks
    )


def seldom(failures: int) -> bool:
    """Return whether so many failures are no more than delta of the draws, and chance."""
    return bool(binom.sf(failures - 1, DRAWS, DELTA) > 0.001)


def failures(
    asked: Promise,
    bundle: Bundle,
    world: TraceArrays,
    false: Callable[[float], bool],
    of: Callable[[TraceArrays], TraceArrays],
) -> int:
    """Return in how many draws a threshold is proved at which a promise is false."""
    start = world.rows(slice(100))
    before = Questions(asked_again(start), splits.as_played("", bundle, asked_again(start)))
    found = 0
    for seed in range(DRAWS):
        drawn = of(some(world, seed))
        part = Questions(drawn, splits.as_played("", bundle, drawn))
        certificate = proof_of(asked, bundle, before, part, None).certificate
        found += certificate.promises and false(certificate.kappa)
    return found


def as_they_are(traces: TraceArrays) -> TraceArrays:
    return traces


def borderline() -> TraceArrays:
    """Return questions of which `small` has one in twenty wrong, and `large` all right."""
    n, roles = 4_000, ("small", "large")
    which = np.arange(n) % 20
    answer = np.stack([which == 0, np.zeros(n, dtype=bool)], axis=1)
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=roles,
        models=roles,
        answer=answer[:, None].astype(np.int16),
        correct=~answer[:, None],
        cost_nano=np.tile([100_000, 2_000_000], (n, 1))[:, None],
        signals={},
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.full(n, -1, dtype=np.int8),
        recorded=np.ones(n, dtype=np.int16),
        independent=np.ones(n, dtype=bool),
    )


def trained(method: str, traces: TraceArrays) -> Bundle:
    return ft.fit(method, questions(traces), 0.1).bundle


@pytest.mark.slow
def test_coverage_with_confidence_fails_as_rarely_as_it_says() -> None:
    """And more often where nobody knows that questions ask the same."""
    world = ft.generate("hotpotqa-llama2-7b", 5_000, seed=7).arrays
    bundle = trained("stopping", world.rows(slice(200)))
    critical = PlayedPolicy(bundle.policy, bundle.empty, None).replay(world).critical
    asked = Coverage("0.9", str(DELTA))

    def false(kappa: float) -> bool:
        return bool((critical >= kappa).mean() < 0.9)

    assert seldom(failures(asked, bundle, world, false, as_they_are))
    assert not seldom(failures(asked, bundle, world, false, unknown))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "per"),
    [
        (Parity, "question"),
        (Agreement, "request"),
        pytest.param(Agreement, "question", marks=pytest.mark.slow),
        pytest.param(Parity, "request", marks=pytest.mark.slow),
    ],
)
def test_so_do_parity_and_agreement_with_a_reference(
    kind: type[Parity] | type[Agreement], per: Per
) -> None:
    """The only point loses exactly epsilon: whatever is proved of it is false."""
    asked = kind("large", "0.05", str(DELTA), per=per)
    world = read_for(asked, borderline(), RIGHT)
    bundle = trained("always-small", borderline().rows(slice(100)))

    found = failures(asked, bundle, world, lambda _: True, as_they_are)
    assert found > 0
    assert seldom(found)
    if per == "question":
        assert not seldom(failures(asked, bundle, world, lambda _: True, unknown))


@pytest.mark.parametrize("kind", [Parity, Agreement])
@pytest.mark.parametrize("draws", [5, pytest.param(DRAWS, marks=pytest.mark.slow)])
def test_wordings_of_one_question_make_no_promise_false(
    kind: type[Parity] | type[Agreement], draws: int
) -> None:
    """Whatever is proved is false; were each wording a question, most of it would be proved."""
    asked = kind("large", "0.05", str(DELTA))
    world = read_for(asked, borderline(), RIGHT)
    bundle = trained("always-small", borderline().rows(slice(100)))
    start = world.rows(slice(100))
    before = Questions(start, splits.as_played("", bundle, start))
    found = dict.fromkeys((False, True), 0)
    for seed in range(draws):
        for typed in found:
            drawn = in_wordings(world, 10_000 + seed, typed=typed)
            part = Questions(drawn, splits.as_played("", bundle, drawn))
            certificate = proof_of(asked, bundle, before, part, None).certificate
            assert certificate.n == (10 * WORDED if typed else WORDED)
            found[typed] += certificate.promises
    assert binom.sf(found[False] - 1, draws, DELTA) > 0.001
    assert draws < DRAWS or binom.sf(found[True] - 1, draws, DELTA) < 0.001
