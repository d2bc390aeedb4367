"""A promise once more: of each kind the same level, on questions that came after it."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

import farthing as ft
from farthing.api.questions import Traces
from farthing.bundle import folder as bundles
from farthing.bundle.base import Bundle
from farthing.errors import InputError, TooFewTracesError
from farthing.methods.base import Dataset
from farthing.promises.agreeing import Judged, JudgeShare
from farthing.promises.base import Promise
from farthing.promises.kinds.agreement import Agreement, AgreementPromise
from farthing.promises.kinds.budget import Budget
from farthing.promises.kinds.coverage import Coverage
from farthing.promises.kinds.parity import Parity
from farthing.promises.kinds.selective import Selective
from farthing.recommendation.pipeline import calibrate, train
from farthing.recommendation.recalibrate import FEWEST, asked_again, divided, recalibrate
from farthing.recommendation.splits import Split
from farthing.traces.arrays import TraceArrays, joined
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset

ROUNDS = preset("hotpotqa-llama2-7b").config
ALPHA = Fraction(1, 5)


def pool(n: int, seed: int, right: tuple[float, ...] = (0.7, 0.8, 0.9)) -> TraceArrays:
    """Return questions of three models, of which the cheap ones show how sure they are."""
    rng = np.random.default_rng(seed)
    hard = rng.random(n)
    correct = rng.random((n, 3)) < np.clip(np.array(right) + 0.3 * (0.5 - hard[:, None]), 0, 1)
    cost = np.array([1_000, 5_000, 90_000]) + rng.integers(0, 500, (n, 3))
    answer = np.where(correct, 0, rng.integers(1, 4, correct.shape))[:, None]
    return TraceArrays(
        ids=np.array([f"{seed}-{i}" for i in range(n)]),
        roles=("small", "medium", "large"),
        models=("small", "medium", "large"),
        answer=answer.astype(np.int16),
        correct=correct[:, None],
        cost_nano=cost[:, None],
        signals={},
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.full(n, -1, dtype=np.int8),
        recorded=np.ones(n, dtype=np.int16),
        independent=np.ones(n, dtype=bool),
    )


def rounds(n: int, seed: int) -> TraceArrays:
    traces = generate(ROUNDS, n, np.random.default_rng(seed))
    return replace(traces, ids=np.array([f"{seed}-{i}" for i in range(n)]))


KINDS: dict[str, tuple[Promise, Callable[[int, int], TraceArrays]]] = {
    "split": (Coverage("0.8"), rounds),
    "pac": (Coverage("0.8", "0.1"), rounds),
    "solvable": (Coverage("0.8", population="solvable"), rounds),
    "selective": (Selective("0.8", "0.2"), rounds),
    "budget": (Budget("0.0009", "0.1", "0.1"), rounds),
    "parity": (Parity("large", "0.1", "0.2"), pool),
    "agreement": (Agreement("large", "0.4", "0.2"), pool),
    "escalated": (Selective("0.7", "0.2", "large", "0.1"), pool),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_promise_of_each_kind_is_asked_again_at_its_level(tmp_path: Path, kind: str) -> None:
    asked, made = KINDS[kind]
    traces, split = made(900, 0), Split(0, {"train": 300, "calibrate": 500})
    policy = "agreement-cascade" if made is pool else "stopping"
    train(Dataset("", traces), policy, ALPHA, tmp_path / "b", split=split)
    first = calibrate(tmp_path / "b", traces, asked, split=split)
    bundle = bundles.load(tmp_path / "b")
    assert bundle.certificate == first.certificate
    again = asked_again(bundle.certificate)
    assert _levels(again) == _levels(asked)
    later = made(600, 1)
    found = recalibrate("b", bundle, later)
    assert type(found.certificate.promise) is type(first.certificate.promise)
    lay, rows = divided(later.content, again, 0)
    assert (len(lay), found.laid_out) == (found.laid_out, len(lay))
    assert len(rows) + len(lay) == 600
    assert found.proving == len(rows)
    assert found.certificate.n == len(rows) or kind == "solvable"
    assert found.certificate.fingerprint != first.certificate.fingerprint
    assert (len(lay) == 0) == isinstance(asked, Coverage)
    trained = bundle.trained or bundle
    assert found.bundle.questions["train"] == trained.questions["train"]
    assert len(found.bundle.questions["calibrate"]) == len(rows)


def _levels(asked: Promise) -> dict[str, object]:
    known = {name: value for name, value in vars(asked).items() if value is not None}
    exact = ("level", "delta", "epsilon", "usd", "most_usd")
    return {name: Fraction(v) if name in exact else v for name, v in known.items()}


@pytest.fixture
def agreed(tmp_path: Path) -> Bundle:
    traces, split = pool(900, 0), Split(0, {"train": 300, "calibrate": 500})
    train(Dataset("", traces), "agreement-cascade", ALPHA, tmp_path / "b", split=split)
    calibrate(tmp_path / "b", traces, Agreement("large", "0.4", "0.2"), split=split)
    return bundles.load(tmp_path / "b")


def test_costs_and_shares_are_those_of_the_questions_that_prove(agreed: Bundle) -> None:
    """By hand: the cheap answer where two agree, else the dear one."""
    later = pool(500, 2)
    found = recalibrate("b", agreed, later)
    _, rows = divided(np.zeros(500, dtype=np.uint64), Agreement("large"), 0)
    some, answer = later.take(rows), later.answer[rows, 0]
    stopped = answer[:, 0] == answer[:, 1]
    same = np.where(stopped, answer[:, 0] == answer[:, 2], True)
    cost = np.where(stopped, some.cost_nano[:, 0, :2].sum(axis=1), some.cost_nano[:, 0].sum(axis=1))
    assert found.old.cost_nano == pytest.approx(cost.mean())
    assert found.old.good == pytest.approx(same.mean())
    assert found.alone_nano["large"] == pytest.approx(some.cost_nano[:, 0, 2].mean())


def test_where_a_reference_answers_in_its_place_what_was_trained_is_calibrated(
    agreed: Bundle, tmp_path: Path
) -> None:
    traces, split = pool(900, 0), Split(0, {"train": 300, "calibrate": 500})
    calibrate(tmp_path / "b", traces, Agreement("large", "0.001", "0.1"), split=split)
    alone = bundles.load(tmp_path / "b")
    assert alone.trained is not None
    later = structs.replace(alone, certificate=agreed.certificate)  # with a level to be proved
    found = recalibrate("b", later, pool(500, 2))
    assert found.proved
    assert found.bundle.trained is None
    assert found.bundle.kind == agreed.kind
    assert found.old.cost_nano == found.alone_nano["large"]
    assert found.old.good == 1


def test_what_a_judge_called_the_same_is_not_proved_anew_without_one(agreed: Bundle) -> None:
    """Audits hold no word of a judge, nor of persons who check it."""
    assert agreed.certificate is not None
    promise = agreed.certificate.promise
    assert isinstance(promise, AgreementPromise)
    share = JudgeShare(epsilon=Fraction("0.1"), delta=Fraction("0.1"))
    judged = Judged(name="mini", share=share, checked=300, errors=0)
    certificate = structs.replace(
        agreed.certificate, promise=structs.replace(promise, judge=judged)
    )
    with pytest.raises(InputError, match="'agreement', which audits alone cannot prove anew"):
        recalibrate("b", structs.replace(agreed, certificate=certificate), pool(100, 2))


def test_what_cannot_be_proved_anew_is_refused(agreed: Bundle) -> None:
    with pytest.raises(TooFewTracesError, match=f"takes {FEWEST} or more"):
        recalibrate("b", agreed, pool(7, 2))
    with pytest.raises(InputError, match="300 of the 900 questions trained the policy"):
        recalibrate("b", agreed, pool(900, 0))
    with pytest.raises(InputError, match="promises nothing"):
        recalibrate("b", structs.replace(agreed, certificate=None), pool(100, 2))
    with pytest.raises(InputError, match=r"unknown role 'large'\. Known: base, guide"):
        recalibrate("b", agreed, rounds(50, 0))


def asking(traces: TraceArrays, first: int = 1) -> TraceArrays:
    """Return questions with a text each, all of them others."""
    content = np.arange(first, first + len(traces), dtype=np.uint64)
    return replace(traces, content=content)


def renamed(traces: TraceArrays) -> TraceArrays:
    """Return the same log, read again under other ids."""
    return replace(traces, ids=np.array([f"again-{name}" for name in traces.ids]))


LEVEL, SPLIT = Agreement("large", "0.4", "0.2"), Split(0, {"train": 300, "calibrate": 500})


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Bundle, dict[str, TraceArrays]]:
    """Return a bundle that one candidate proved, and its questions by what they did."""
    folder, traces = tmp_path_factory.mktemp("asked") / "b", asking(pool(900, 0))
    train(Dataset("", traces), "agreement-cascade", ALPHA, folder, split=SPLIT)
    calibrate(folder, traces, LEVEL, split=SPLIT)
    bundle = bundles.load(folder)
    known = {
        part: np.isin(traces.content, np.array([*bundle.questions[part]], dtype=np.uint64))
        for part in ("train", "calibrate")
    }
    parts = {part: traces.take(rows) for part, rows in known.items()}
    assert {part: len(rows) for part, rows in parts.items()} == {"train": 300, "calibrate": 500}
    return bundle, {**parts, "all": traces}


@pytest.mark.parametrize("again", [lambda traces: traces, renamed])
@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("train", "300 of the 300 questions trained the policy, so nothing could be promised anew"),
        ("calibrate", "500 of the 500 questions set its threshold, so nothing could be promised"),
        ("all", "300 of the 900 questions trained the policy and 500 set its threshold, so"),
    ],
)
def test_what_trained_or_proved_proves_nothing_anew_under_whatever_ids(
    asked: tuple[Bundle, dict[str, TraceArrays]],
    part: str,
    says: str,
    again: Callable[[TraceArrays], TraceArrays],
) -> None:
    bundle, parts = asked
    with pytest.raises(InputError, match=says):
        recalibrate("b", bundle, again(parts[part]))
    other = replace(parts[part], correct=~parts[part].correct, cost_nano=parts[part].cost_nano + 1)
    with pytest.raises(InputError, match=says):
        recalibrate("b", bundle, again(other))


def test_marks_of_an_earlier_version_go_on_being_checked(
    asked: tuple[Bundle, dict[str, TraceArrays]],
) -> None:
    """They know a record by its id, answers and costs, and nothing of texts."""
    bundle, parts = asked
    texts = frozenset(range(1, 901))
    old = structs.replace(bundle, questions={k: m - texts for k, m in bundle.questions.items()})
    assert {len(marks) for marks in old.questions.values()} == {300, 500}
    with pytest.raises(InputError, match="500 of the 500 questions set its threshold"):
        recalibrate("b", old, parts["calibrate"])
    assert recalibrate("b", old, renamed(parts["calibrate"])).proving > 0


def test_a_few_that_were_met_are_left_out_and_the_certificate_says_so(
    asked: tuple[Bundle, dict[str, TraceArrays]], tmp_path: Path
) -> None:
    bundle, parts = asked
    later = asking(pool(500, 2), 2_000)
    mixed = joined([later, renamed(parts["calibrate"]).take(np.arange(40))])
    found, alone = recalibrate("b", bundle, mixed), recalibrate("b", bundle, later)
    said = "40 of the 540 questions set its threshold: these are left out"
    assert [said in note for note in found.notes] == [True]
    assert f"{said}, and nothing is promised of such." in found.certificate.conditional_on
    assert (found.proving, found.new) == (alone.proving, alone.new)
    assert found.bundle.questions == alone.bundle.questions
    with pytest.raises(TooFewTracesError, match="5 distinct questions are too few"):
        recalibrate("b", bundle, mixed.take(np.arange(495, 505)))
    bundles.write(tmp_path / "anew", found.bundle)
    anew = bundles.load(tmp_path / "anew")
    assert anew.questions == found.bundle.questions
    with pytest.raises(InputError, match="500 of the 500 questions proved an earlier promise"):
        recalibrate("anew", anew, renamed(parts["calibrate"]))


def test_each_request_counts_by_its_record_alone(tmp_path: Path) -> None:
    """Requests of one text come again, and a share of requests is of all of them."""
    traces = asking(pool(900, 0))
    train(Dataset("", traces), "agreement-cascade", ALPHA, tmp_path / "b", split=SPLIT)
    calibrate(tmp_path / "b", traces, replace(LEVEL, per="request"), split=SPLIT)
    bundle = bundles.load(tmp_path / "b")
    proved = traces.take(known_by(tmp_path / "b", "calibrate", traces))
    assert recalibrate("b", bundle, renamed(proved)).proving > 0
    with pytest.raises(InputError, match="500 of the 500 questions set its threshold"):
        recalibrate("b", bundle, proved)


@pytest.mark.slow
def test_a_second_certificate_of_the_same_questions_is_a_second_look(tmp_path: Path) -> None:
    folder, traces = tmp_path / "b", asking(pool(900, 0))
    train(Dataset("", traces), "agreement-cascade", ALPHA, folder, split=SPLIT)

    def looks(some: TraceArrays, level: str) -> list[str]:
        done = calibrate(folder, some, Agreement("large", level, "0.2"), split=SPLIT)
        said = [one for one in done.certificate.conditional_on if one.startswith("It is look")]
        assert [note for note in done.notes if note.startswith("It is look")] == said
        assert bundles.load(folder).certificate == done.certificate
        return said

    assert looks(traces, "0.4") == []
    before = (folder / "bundle.json").read_bytes()
    assert looks(traces, "0.4") == [], "the same again is no new one"
    assert (folder / "bundle.json").read_bytes() == before
    second = "It is look 2 on these questions: each errs at its own risk, the best of them at the"
    assert looks(traces, "0.3") == [f"{second} sum of all."]
    assert looks(traces, "0.3") == [f"{second} sum of all."]
    assert "look 3" in " ".join(looks(traces, "0.001")), "the reference answers in its place"
    assert "look 4" in " ".join(looks(traces, "0.4"))
    later = joined([traces.take(known_by(folder, "train", traces)), asking(pool(600, 3), 5_000)])
    later = replace(later, split=np.repeat([0, 1], [300, 600]).astype(np.int8))
    assert looks(later, "0.4") == [], "other questions prove"


def known_by(folder: Path, part: str, traces: TraceArrays) -> np.ndarray:
    marks = np.array([*bundles.load(folder).questions[part]], dtype=np.uint64)
    return np.flatnonzero(np.isin(traces.content, marks))


def test_python_counts_looks_as_well(tmp_path: Path) -> None:
    traces = questions_of(asking(pool(900, 0)))
    policy = ft.fit("agreement-cascade", traces[:300], ALPHA, grade="same as large")
    first = policy.calibrate(traces[300:800], LEVEL)
    with pytest.warns(UserWarning, match="It is look 2 on these questions"):
        again = first.calibrate(traces[300:800], Agreement("large", "0.3", "0.2"))
    assert again.certificate is not None
    assert "It is look 2" in " ".join(again.certificate.conditional_on)
    with pytest.raises(InputError, match="300 of the 300 calibration questions trained"):
        policy.calibrate(questions_of(renamed(traces[:300].arrays)), LEVEL)


def questions_of(arrays: TraceArrays) -> Traces:
    return Traces(Dataset("log", arrays), None)
