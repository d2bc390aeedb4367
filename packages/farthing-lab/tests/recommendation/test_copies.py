"""Questions that ask the same do the same, count once in a proof, and are said."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from made_up_pool import asked_again, pool, questions, unknown
from question_parts import proof_of, proved_bundle, proving

import farthing as ft
from farthing.api.rendering import drawn
from farthing.bundle import folder as bundles
from farthing.bundle.base import Bundle
from farthing.errors import InputError, TooFewTracesError
from farthing.methods.base import Dataset
from farthing.methods.cards import card
from farthing.promises.base import Promise
from farthing.promises.certificate import Certificate
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.budget import Budget
from farthing.promises.kinds.coverage import Coverage
from farthing.promises.kinds.parity import Parity
from farthing.promises.kinds.selective import Selective
from farthing.promises.statistics.cross_fitted import CrossFitted
from farthing.recommendation import candidates, splits
from farthing.recommendation.certify import value_on
from farthing.recommendation.cross_fit import FOLDS, _folds
from farthing.recommendation.evaluate import evaluate
from farthing.recommendation.pipeline import calibrate, train
from farthing.recommendation.played import Questions
from farthing.recommendation.promised_grade import read_for
from farthing.recommendation.recalibrate import asked_again as promise_again
from farthing.recommendation.recalibrate import divided, recalibrate
from farthing.recommendation.recommend import recommend
from farthing.recommendation.record import Recommendation
from farthing.recommendation.savings import SingleModels
from farthing.recommendation.splits import Roles, Split, split_four_ways
from farthing.reports.recommend import in_detail
from farthing.traces.arrays import RIGHT, IntArray, TraceArrays
from farthing.traces.copies import asked_first, one_of_each
from farthing.traces.splits import fixed_parts
from farthing_lab.comparison.compare import compare
from farthing_lab.comparison.plan import Plan
from farthing_lab.promises.weighted import Shift
from farthing_lab.studies.tuning import fold

ALPHA = Fraction(1, 10)
TIMES, DELTA = 5, 0.1
QUICK = ("agreement-cascade", "always", "micp", "fixed")
LARGE = Parity("large", "0.05", "0.1")
NOBODY_CHOOSES = Roles(choose=False, measure=False)


# what is divided


def contents(traces: TraceArrays, rows: IntArray) -> set[int]:
    return set(traces.content[rows].tolist())


def test_those_that_ask_the_same_do_the_same_in_a_recommendation() -> None:
    traces = asked_again(pool(60), 3)
    parts = split_four_ways(traces, 0)
    each = [contents(traces, rows) for rows in vars(parts).values()]
    assert sum(map(len, each)) == len(set.union(*each)) == 60
    assert sum(map(len, vars(parts).values())) == 180
    assert parts.distinct(traces.content) == {"train": 18, "choose": 10, "prove": 24, "report": 8}
    several = split_four_ways(traces, 0, NOBODY_CHOOSES)
    each = [contents(traces, rows) for rows in (several.train, several.prove)]
    assert [len(one) for one in each] == [18, 42]
    assert not set.intersection(*each)
    assert len(several.train) + len(several.prove) == 180


def test_sixty_questions_are_sixty_however_often_they_are_asked() -> None:
    with pytest.raises(
        TooFewTracesError, match=r"^there are 117 requests, 39 distinct questions, "
    ):
        split_four_ways(asked_again(pool(39), 3), 0)


@pytest.mark.parametrize("known", [True, False])
def test_a_division_without_copies_is_what_it_always_was(known: bool) -> None:
    traces = pool(100)
    if known:
        traces = replace(traces, content=np.arange(100, 0, -1).astype(np.uint64))
    order = np.random.default_rng(5).permutation(100)
    rest = order[30:]
    wanted = (order[:30], rest[14:][:16], rest[14:][16:], rest[:14])
    found = split_four_ways(traces, 5)
    for rows, name in zip(wanted, ("train", "choose", "prove", "report"), strict=True):
        assert getattr(found, name).tolist() == sorted(rows.tolist())
    lay, prove = divided(traces.content, Agreement("large"), 5)
    assert (lay.tolist(), prove.tolist()) == (sorted(order[:25]), sorted(order[25:]))
    number = order % 4
    learn, judge = fold(traces.content, 5, 4, 1)
    assert judge.tolist() == np.flatnonzero(number == 1).tolist()
    assert learn.tolist() == np.flatnonzero(number != 1).tolist()


def test_audits_and_folds_keep_them_together() -> None:
    content = asked_again(pool(40), 3).content
    lay, prove = divided(content, Agreement("large"), 0)
    assert len(set(content[lay])) == 10
    assert not set(content[lay]) & set(content[prove])
    assert len(lay) + len(prove) == 120
    judged = [fold(content, 0, 4, which) for which in range(4)]
    assert [len(judge) for _, judge in judged] == [30] * 4
    for learn, judge in judged:
        assert not set(content[learn]) & set(content[judge])
        assert len(learn) + len(judge) == 120


@pytest.mark.parametrize("other", [-1, 2])
def test_of_a_question_that_is_marked_to_train_no_copy_proves_or_measures(other: int) -> None:
    traces = asked_again(pool(60), 2)
    _, first = np.unique(traces.content, return_index=True)
    train = np.isin(traces.content, traces.content[first[:20]])
    split = np.where(train, other, -1).astype(np.int8)
    split[first[:20]] = 0
    marked = replace(traces, split=split)
    assert split_four_ways(marked, 0).train.tolist() == np.flatnonzero(train).tolist()
    parts = fixed_parts(marked, np.random.default_rng(0))
    assert parts.train.tolist() == np.flatnonzero(train).tolist()


# what is proved

ROUNDS = ft.generate("hotpotqa-llama2-7b", 400, seed=3).arrays


def shifted() -> Shift:
    return Shift("0.8", ft.generate("hotpotqa-llama2-7b", 200, seed=8).arrays)


PROMISES: dict[str, Callable[[], Promise]] = {
    "split": lambda: Coverage("0.8"),
    "pac": lambda: Coverage("0.8", "0.1"),
    "groups": lambda: Coverage("0.8", within_groups=True),
    "selective": lambda: Selective("0.7", "0.2"),
    "budget": lambda: Budget("0.01", "0.1", "0.1"),
    "shift": shifted,
    "parity": lambda: LARGE,
    "agreement": lambda: Agreement("large", "0.4", "0.2"),
    "escalated": lambda: Selective("0.7", "0.2", "large", "0.1"),
}


@pytest.fixture(scope="module")
def policies() -> dict[str, Bundle]:
    return {
        "rounds": ft.fit("stopping", questions(ROUNDS), 0.1).bundle,
        "pool": ft.fit("agreement-cascade", questions(pool(150)), 0.1).bundle,
    }


def certified(kind: str, policies: dict[str, Bundle], times: int, seed: int = 5) -> Certificate:
    """Prove a promise on 200 questions, each of them asked so often; all in the same order."""
    asked = PROMISES[kind]()
    of_pool = kind in {"parity", "agreement", "escalated"}
    made = pool(200, seed) if of_pool else ft.generate("hotpotqa-llama2-7b", 200, seed=seed).arrays
    grouped = replace(made, group=np.arange(200, dtype=np.int32) % 2, group_names=("a", "b"))
    start = pool(150) if of_pool else ROUNDS
    bundle = policies["pool" if of_pool else "rounds"]
    read, first = (read_for(asked, one, RIGHT) for one in (grouped, start))
    drawn = read if times == 1 else asked_again(read, times)
    part = Questions(drawn, splits.as_played("", bundle, drawn))
    before = Questions(first, splits.as_played("", bundle, first))
    return proof_of(asked, bundle, before, part, None).certificate


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROMISES)
def test_a_proof_of_any_kind_counts_each_question_once(
    kind: str, policies: dict[str, Bundle]
) -> None:
    """Copies alike, so that the draw of one changes nothing but the fingerprint."""
    once, often = (certified(kind, policies, times) for times in (1, 3))
    assert once.promises
    assert (once.n, once.requests) == (200, None)
    assert (often.n, often.requests) == (200, 600)
    assert often.kappa == once.kappa
    assert often.promise == once.promise
    assert "Each question counts once: of 600 requests 200 ask distinct questions." in str(often)
    assert "distinct" not in str(once)
    assert kind == "groups" or "200 distinct" in str(often)
    assert often.plain_language().endswith(" A question that is asked again counts once.")
    assert Certificate.from_json(often.to_json()) == often


@pytest.mark.slow
def test_a_stream_is_about_each_of_its_questions(policies: dict[str, Bundle]) -> None:
    drawn = asked_again(ROUNDS.rows(slice(100)), 3)
    asked = Coverage("0.8", online=True)
    known, plain = (
        proof_of(
            asked, policies["rounds"], Questions(some, some), Questions(some, some), None
        ).certificate
        for some in (drawn, unknown(drawn))
    )
    assert known == plain


def test_which_copy_is_drawn_no_grade_decides() -> None:
    content = asked_again(pool(50)).content
    rows = one_of_each(content)
    assert len(rows) == 50
    assert set(content[rows].tolist()) == set(content.tolist())
    first = np.sort(np.unique(content, return_index=True)[1])
    assert (rows != first).sum() > 25  # but chance, and not the order


# what is measured


def uneven(traces: TraceArrays) -> TraceArrays:
    """Return questions of which the first half was asked three times, and the others once."""
    often = asked_again(traces, 3)
    n, which = len(traces), often.content.astype(np.int64) - 1
    first = asked_first(often.content) == np.arange(3 * n)
    return often.take(first | (which < n // 2))


@pytest.mark.slow
@pytest.mark.parametrize("holdout", [None, 60])
def test_figures_are_of_distinct_questions(
    monkeypatch: pytest.MonkeyPatch, holdout: int | None
) -> None:
    """Those of each trial, too: of distinct ones that train, for distinct ones that will prove."""
    tried: list[tuple[int, int]] = []
    score = CrossFitted.score

    def noting(self: CrossFitted, margin: float, proving: int) -> float:
        tried.append((self.n, proving))
        return score(self, margin, proving)

    monkeypatch.setattr(CrossFitted, "score", noting)
    traces = uneven(pool(400))
    found = recommend_quickly(traces, holdout=holdout)
    roles = Roles(choose=False, measure=False, holdout=holdout)
    parts = split_four_ways(traces, 0, roles)
    sizes = parts.distinct(traces.content)
    assert set(tried) == {(sizes["train"], sizes["prove"])}
    measured = parts.prove if holdout is None else parts.report
    once = measured[one_of_each(traces.content[measured])]
    assert len(once) == (sizes["prove"] if holdout is None else 60) < len(measured)
    assert found.models == SingleModels.of(traces.take(once)).figures()
    assert found.models != SingleModels.of(traces.take(measured)).figures()


def test_each_of_those_that_ask_the_same_is_left_out_with_the_others() -> None:
    """No policy is rehearsed on a question that it was fitted to, asked once more."""
    content = asked_again(pool(60), 3).content
    fold = _folds(asked_again(pool(60), 3), 0)
    for k in range(FOLDS):
        assert not set(content[fold == k]) & set(content[fold != k])
        assert 0 < (fold == k).sum() < 180 / 2


def test_what_a_proof_is_worth_is_of_distinct_questions(policies: dict[str, Bundle]) -> None:
    drawn = uneven(pool(200, 4))
    part = Questions(drawn, splits.as_played("", policies["pool"], drawn))
    before = Questions(pool(150), splits.as_played("", policies["pool"], pool(150)))
    kept = proved_bundle(policies["pool"], Parity("large", "0.1", "0.2"), before, part).bundle
    assert kept.value == value_on(kept, proving(part).distinct()) != value_on(kept, proving(part))


@pytest.mark.slow
def test_the_mix_that_is_to_come_is_of_distinct_questions(policies: dict[str, Bundle]) -> None:
    target = uneven(ft.generate("hotpotqa-llama2-7b", 200, seed=8).arrays)
    part = Questions(ROUNDS, ROUNDS)
    many, once = (
        proof_of(Shift("0.8", some), policies["rounds"], part, part, None).certificate
        for some in (target, target.take(one_of_each(target.content)))
    )
    assert many == once


# what is said


@pytest.fixture(scope="module")
def found() -> Recommendation:
    return recommend_quickly(asked_again(pool(700), 3), holdout=98)


@pytest.mark.slow
def test_a_recommendation_proves_and_measures_distinct_questions(found: Recommendation) -> None:
    certificate, traces = found.certificate, asked_again(pool(700), 3)
    parts = split_four_ways(traces, 0, Roles(choose=False, measure=False, holdout=98))
    assert certificate is not None
    assert certificate.promises
    assert found.sizes == {"train": 210, "choose": 0, "prove": 392, "report": 98}
    assert (certificate.n, certificate.requests) == (392, 1_176) == (392, len(parts.prove))
    assert found.found.sizes["test"] == 98
    assert found.found.judged is not None
    met = found.bundle.questions
    assert [len(met[part]) for part in ("train", "calibrate")] == [630 + 210, 1_176 + 392]


@pytest.mark.slow
def test_those_that_prove_are_measured_as_distinct_questions_too() -> None:
    """Where nothing is held out."""
    found = recommend_quickly(asked_again(pool(700), 3))
    assert found.certificate is not None
    assert found.sizes == {"train": 210, "choose": 0, "prove": 490, "report": 0}
    assert (found.certificate.n, found.certificate.requests) == (490, 1_470)
    assert found.found.sizes["test"] == 490
    assert found.found.judged is None


@pytest.mark.slow
def test_questions_that_choose_are_distinct_as_well() -> None:
    found = recommend(Dataset("log", asked_again(pool(700), 3)), Coverage("0.7"))
    assert found.certificate is not None
    assert found.sizes == {"train": 210, "choose": 117, "prove": 275, "report": 98}
    assert (found.certificate.n, found.certificate.requests) == (275, 825)
    assert found.found.sizes["test"] == 98
    met = found.bundle.questions
    assert [len(met[part]) for part in ("choose", "calibrate")] == [351 + 117, 825 + 275]


@pytest.mark.slow
def test_the_screen_and_the_notes_say_how_many_are_distinct(found: Recommendation) -> None:
    said = "2,100 requests, 700 distinct questions"
    assert any(note.startswith(said) for note in found.notes)
    shown = " ".join(drawn(in_detail(found)).split())
    assert said in shown
    assert "in the draw of 392 distinct questions" in shown
    assert "of 1,176 requests 392 ask distinct questions" in shown
    assert "210 questions trained, 392 proved. The figures are of 98 others" in shown
    alike = recommend_quickly(pool(300))
    assert not any("distinct" in note for note in alike.notes)
    assert "distinct" not in drawn(in_detail(alike))


def recommend_quickly(
    traces: TraceArrays, asked: Promise = LARGE, holdout: int | None = None
) -> Recommendation:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "cards", lambda: [card(name) for name in QUICK])
        return recommend(Dataset("log", traces), asked, holdout=holdout)


def test_each_step_by_hand_keeps_to_it(tmp_path: Path) -> None:
    traces, split = asked_again(pool(400), 3), Split(0)
    folder = tmp_path / "b"
    train(Dataset("", traces), "agreement-cascade", ALPHA, folder, split=split)
    done = calibrate(folder, traces, Parity("large", "0.1", "0.2"), split=split)
    parts = fixed_parts(traces, np.random.default_rng(0))
    each = [contents(traces, rows) for rows in vars(parts).values()]
    assert [len(one) for one in each] == [240, 80, 80]
    assert len(set.union(*each)) == 400
    assert (done.certificate.n, done.certificate.requests) == (80, 240)
    assert done.notes[0].startswith("240 requests, 80 distinct questions")
    seen = evaluate(folder, traces, split=split)
    assert seen.sizes["test"] == 80
    assert seen.notes == (
        "240 requests, 80 distinct questions; those that ask the same do the same",
    )
    later = replace(asked_again(pool(200, 1), 3), ids=np.array([f"n{i}" for i in range(600)]))
    later = replace(later, content=later.content + np.uint64(10_000))  # which ask something else
    anew = recalibrate("b", bundles.load(folder), later)
    assert (anew.laid_out, anew.proving) == (50, 150)
    assert (anew.certificate.n, anew.certificate.requests) == (150, 450)
    assert anew.notes[0].startswith("600 requests, 200 distinct questions")


def test_a_comparison_draws_distinct_questions() -> None:
    traces = asked_again(pool(200), 3)
    plan = Plan((ALPHA,), policies=("agreement-cascade",), promise=LARGE, splits=3, workers=1)
    found = compare(Dataset("log", traces), plan)
    assert found.sizes == {"train": 120, "calibrate": 40, "test": 40}
    assert "(600 requests, 200 distinct questions)" in found.notes[0]


# per request


@pytest.mark.slow
def test_a_promise_by_request_is_proved_and_measured_on_all_of_them() -> None:
    """Some measure whatever their number, as no interval is known for those that prove."""
    found = recommend_quickly(asked_again(pool(700), 3), replace(LARGE, per="request"))
    certificate = found.certificate
    assert certificate is not None
    assert certificate.promises
    assert certificate.per_request
    assert found.sizes == {"train": 210, "choose": 0, "prove": 392, "report": 98}
    assert found.held_out
    assert (certificate.n, certificate.requests) == (392, 1_176)
    assert str(certificate).endswith(
        " It is about requests, here 1,176: a question counts as often as it is asked, 3 times at "
        "most."
    )
    assert "Of 100 requests" in certificate.plain_language()
    assert "counts once" not in certificate.plain_language()
    assert found.found.sizes["test"] == 294
    judged = found.found.judged
    assert judged is not None
    assert judged.what == "accuracy by request less that of large"
    low, high = judged.interval
    assert low < judged.value < high
    assert high - low > 2 / np.sqrt(98) * 0.1  # as wide as 98 questions make it
    assert asked_once_more(certificate) == Parity("large", "0.05", "0.1", per="request")
    assert Certificate.from_json(certificate.to_json()) == certificate


def asked_once_more(certificate: Certificate) -> Promise:
    again = promise_again(certificate)
    assert isinstance(again, Parity)
    return replace(again, epsilon=str(float(again.epsilon)), delta=str(float(again.delta)))


def test_what_nobody_knows_the_text_of_cannot_be_counted_by_request(
    policies: dict[str, Bundle],
) -> None:
    drawn = pool(50)
    part = Questions(drawn, splits.as_played("", policies["pool"], drawn))
    with pytest.raises(InputError, match=r"^a promise per request needs .* and 50 of 50 have no"):
        proof_of(replace(LARGE, per="request"), policies["pool"], part, part, None)


def test_other_promises_count_each_question_once() -> None:
    assert LARGE.counting("request") == replace(LARGE, per="request")
    assert Coverage("0.9").counting("question") == Coverage("0.9")
    with pytest.raises(InputError, match=r"^a promise of coverage counts each question once; ask"):
        Coverage("0.9").counting("request")
    with pytest.raises(InputError, match=r"^per is 'row'; give 'question' or 'request'$"):
        Agreement("large", per="row")  # type: ignore[arg-type]
