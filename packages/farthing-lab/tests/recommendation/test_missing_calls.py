"""A call that was not made is unknown: what every command makes of logs with holes."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from made_up_pool import pool, questions, write
from scipy.stats import binom, binomtest, fisher_exact
from typer.testing import CliRunner

import farthing as ft
from farthing.cli.main import app
from farthing.errors import InputError, TooFewTracesError
from farthing.promises.agreeing import Agreeing, agreement_p_values
from farthing.promises.base import Promise
from farthing.promises.kinds.parity import ParityPromise
from farthing.promises.paired import Paired, parity_p_values
from farthing.recommendation.warnings import by_what_was_recorded, unlike
from farthing.traces.arrays import NO_ANSWER, WHY_MISSING, BoolArray, TraceArrays
from farthing.traces.eligibility import alike, only
from farthing.traces.jsonl import write_traces

CHANCE = WHY_MISSING.index("chance")
CASCADED = WHY_MISSING.index("earlier_reply")


def holes(traces: TraceArrays, made: BoolArray, why: int = -1) -> TraceArrays:
    """Return questions of which some calls, [n, L], were never made; nothing of them is left."""
    there = made[:, None]
    return replace(
        traces,
        made=there,
        answer=np.where(there, traces.answer, NO_ANSWER).astype(np.int16),
        correct=traces.correct & there,
        ungraded=traces.ungraded & there,
        cost_nano=np.where(there, traces.cost_nano, 0),
        signals={
            name: np.where(there, values, np.nan).astype(np.float32)
            for name, values in traces.signals.items()
        },
        missing_because=np.where(made.all(axis=1), -1, why).astype(np.int8),
    )


def missing(traces: TraceArrays, said: str | None) -> ft.Traces:
    """Return what the Python door takes, with what is said of missing calls."""
    return ft.Traces(replace(questions(traces).dataset, missing=said))  # type: ignore[arg-type]


def asked(n: int, share: tuple[float, float, float], seed: int = 0) -> BoolArray:
    """Draw who is asked; everyone is on every question that all three are."""
    return np.asarray(np.random.default_rng(10_000 + seed).random((n, 3)) < share)


TWO = only(pool(2_000, 5), ("small", "large"))
SOME = asked(2_000, (1.0, 1.0, 0.6))[:, [0, 2]]


@pytest.mark.slow
def test_a_reference_that_was_not_asked_is_not_wrong() -> None:
    """The small model is right .85 and the large one .98 of the time; of 60 % the latter is known.

    Were missing calls wrong, the small model would be 26 points better, for nothing.
    """
    found = ft.recommend(questions(holes(TWO, SOME)), ft.Parity("large", 0.02)).found
    whole = int(SOME.all(axis=1).sum())
    assert sum(found.sizes.values()) == whole
    assert found.name != "always-small"
    theirs = found.models["large"]
    assert theirs is not None
    assert theirs.accuracy > 0.95
    certificate = found.certificate
    assert certificate is not None
    assert certificate.asked_of is not None
    assert (certificate.asked_of.questions, certificate.asked_of.recorded) == (whole, 2_000)
    assert f"the {whole:,} of the 2,000 recorded ones that were asked of both" in str(certificate)
    assert any("why others were" in one for one in certificate.conditional_on)


@pytest.mark.slow
def test_what_was_asked_of_one_alone_hides_no_saving() -> None:
    """With the questions of the reference alone beside, all is as with the others by themselves."""
    traces = only(pool(1_400, 8), ("small", "large"))
    both = np.arange(1_400) % 2 == 0
    made = np.stack([both, np.ones(1_400, dtype=bool)], axis=1)
    alone = ft.recommend(questions(traces.take(both)), ft.Parity("large", 0.02)).found
    among = ft.recommend(questions(holes(traces, made)), ft.Parity("large", 0.02)).found
    assert (among.name, among.sizes) == (alone.name, alone.sizes)
    assert among.found.value.saved == alone.found.value.saved
    assert among.found.metrics == alone.found.metrics


@pytest.mark.slow
def test_every_command_says_of_how_many_questions_it_is(tmp_path: Path) -> None:
    log = write(tmp_path / "log.jsonl", holes(TWO.take(np.arange(900)), SOME[:900]))
    kept = [json.loads(line) for line in log.read_text().splitlines()]
    for line, was in zip(kept, SOME, strict=False):
        line["calls"] = [
            call
            for call, made in zip(line["calls"], was, strict=True)
            if made and call["cost_usd"] > 0
        ]
    log.write_text("".join(json.dumps(line) + "\n" for line in kept))
    n = int(SOME[:900].all(axis=1).sum())
    said = f"the {n:,} of the 900 recorded ones"
    run = CliRunner()

    def of(*words: str) -> str:
        done = run.invoke(app, [*words, "--traces", str(log)])
        assert done.exit_code in {0, 1}, done.output
        return " ".join(done.output.split())

    bundle = str(tmp_path / "bundle")
    assert f"the {n:,} of 900 that all models were asked" in of("recommend", "--reference", "large")
    of("train", "--policy", "agreement-cascade", "--out", bundle)
    parity = ("--promise", "parity", "--reference", "large", "--epsilon", "0.05", "--delta", "0.1")
    assert said in of("calibrate", "--bundle", bundle, *parity)
    assert said in of("evaluate", "--bundle", bundle)
    report = ("--out", str(tmp_path / "report"), "--splits", "3", "--policies", "agreement-cascade")
    of("compare", *report, *parity)
    assert said in (tmp_path / "report" / "report.html").read_text()


@pytest.mark.slow
def test_another_models_calls_leave_a_proof_as_it_was() -> None:
    """Neither what a model outside says nor whether it was asked changes a candidate's p-values."""
    traces = pool(1_200, 3)
    train, held = (
        questions(only(traces.take(np.arange(400)), ("small", "large"))),
        traces.take(np.arange(400, 1_200)),
    )
    policy = ft.fit("conformal-arbitrage", train)
    rng = np.random.default_rng(4)
    both = rng.random(800) < 0.7
    proofs = []
    for _ in range(3):
        made = np.stack([both, rng.random(800) < 0.5, np.ones(800, dtype=bool)], axis=1)
        other = np.where(np.arange(3) == 1, rng.integers(0, 5, (800, 1, 3)), held.answer)
        log = replace(held, answer=other.astype(np.int16), correct=other == 0)
        proved = policy.calibrate(questions(holes(log, made, CHANCE)), ft.Parity("large", 0.05))
        proofs.append(proved.certificate)
    assert proofs[0] == proofs[1] == proofs[2]
    assert proofs[0] is not None
    assert proofs[0].n == int(both.sum())


@pytest.mark.slow
def test_sets_by_chance_share_delta_and_each_proves_on_its_own_questions() -> None:
    traces = pool(3_000, 11)
    made = asked(3_000, (1.0, 0.6, 1.0), 1)
    found = ft.recommend(questions(holes(traces, made, CHANCE)), ft.Parity("large", 0.05)).found
    certificate = found.certificate
    assert certificate is not None
    assert certificate.promises
    promise = certificate.promise
    assert isinstance(promise, ParityPromise)
    chains = [(chain.name, chain.share) for chain in promise.chains]
    of_a_set, rest = chains[: len(chains) // 2], chains[len(chains) // 2 :]
    assert sum(share for _, share in of_a_set) == sum(share for _, share in rest) == Fraction(1, 2)
    assert sorted(of_a_set) == sorted(rest)  # each set's methods by the same shares
    assert promise.own_delta >= promise.delta * dict(chains)[found.name]
    assert f"one of {len(chains)} candidates, proved at " in str(certificate)
    assert certificate.asked_of is not None
    assert certificate.asked_of.models in {("small", "large"), ("small", "medium", "large")}
    notes = " ".join(found.notes)
    assert "proved side by side, by their cost on" in notes
    unknown = ft.recommend(questions(holes(traces, made)), ft.Parity("large", 0.05)).found
    assert unknown.certificate is not None
    assert unknown.certificate.asked_of is not None
    assert unknown.certificate.asked_of.questions == int(made.all(axis=1).sum())
    assert isinstance(unknown.certificate.promise, ParityPromise)
    assert sum(chain.share for chain in unknown.certificate.promise.chains) == 1


@pytest.mark.slow
def test_a_cascades_log_is_refused_or_taken_at_worst(tmp_path: Path) -> None:
    traces = only(pool(900, 2), ("small", "large"))
    hard = ~traces.correct[:, 0, 0] | (np.arange(900) % 10 == 0)
    made = np.stack([np.ones(900, dtype=bool), hard], axis=1)
    log = holes(traces, made, CASCADED)
    with pytest.raises(InputError, match=r"since an earlier reply made them needless.*worst"):
        ft.recommend(questions(log), ft.Parity("large", 0.05))
    for said in ("chance", "unknown"):  # what the traces say holds all the same
        with pytest.raises(InputError, match="since an earlier reply made them needless"):
            ft.recommend(missing(log, said), ft.Parity("large", 0.05))
    found = ft.recommend(missing(log, "worst"), ft.Parity("large", 0.05)).found
    assert sum(found.sizes.values()) <= int(hard.sum())
    trained = ft.fit("agreement-cascade", questions(log))
    with pytest.raises(InputError, match="earlier reply"):
        trained.calibrate(questions(log), ft.Parity("large", 0.05))
    with pytest.raises(InputError, match="recommend, calibrate and evaluate"):
        ft.compare(missing(log, "worst"), ["agreement-cascade"], promise=ft.Parity("large", 0.05))


def test_the_worst_of_questions_with_nothing_in_common_is_refused() -> None:
    traces = only(pool(300, 2), ("small", "medium", "large"))
    made = np.array([[True, True, False], [False, False, True]])[np.arange(300) % 2]
    for said in (None, "worst"):
        with pytest.raises(TooFewTracesError, match="none of the 150 questions that large"):
            ft.recommend(missing(holes(traces, made), said), ft.Parity("large", 0.05))


@pytest.mark.slow
def test_holes_that_follow_difficulty_are_named() -> None:
    traces = only(pool(900, 2), ("small", "large"))
    hard = ~traces.correct[:, 0, 0] | (np.arange(900) % 4 == 0)
    made = np.stack([np.ones(900, dtype=bool), hard], axis=1)
    found = ft.recommend(questions(holes(traces, made)), ft.Parity("large", 0.05)).found
    assert "calls are not missing by chance" in " ".join(found.notes)
    made = asked(900, (1.0, 1.0, 0.5))[:, [0, 2]]
    found = ft.recommend(questions(holes(traces, made)), ft.Parity("large", 0.05)).found
    assert "calls are not missing by chance" not in " ".join(found.notes)


def lacking(n: int, few: int, *, wrong: bool, seed: int = 0) -> TraceArrays:
    """Return a pool where the small model was not asked `few` questions, maybe where large errs."""
    traces = only(pool(n, seed), ("small", "large"))
    rows = np.random.default_rng(seed).permutation(n)
    if wrong:
        rows = np.concatenate([rows[~traces.correct[rows, 0, 1]], rows[traces.correct[rows, 0, 1]]])
    made = np.ones((n, 2), dtype=bool)
    made[rows[:few], 0] = False
    return holes(traces, made)


@pytest.mark.parametrize("few", [4, 8, 20, 29, 31])
def test_chance_that_the_data_contradict_is_named_at_every_size(few: int) -> None:
    traces = lacking(1_500, few, wrong=True)
    (said,) = by_what_was_recorded(traces, np.flatnonzero(traces.complete))
    assert said.startswith("calls are not missing by chance: large is right ")


def test_calls_that_chance_left_out_are_seldom_named() -> None:
    """Four tests of shares at 1 % together."""
    logs = [lacking(80, 4 + seed % 30, wrong=False, seed=seed) for seed in range(100)]
    named = sum(unlike(log, np.flatnonzero(log.complete)) is not None for log in logs)
    assert binomtest(named, 100, 0.01, alternative="greater").pvalue > 1e-3


@pytest.mark.parametrize("few", [3, 12, pytest.param(40, marks=pytest.mark.slow)])
def test_how_little_few_questions_could_say_is_said(few: int) -> None:
    """Against the power of the exact test by enumeration."""
    traces = lacking(160, few, wrong=False)
    complete = traces.complete
    (said,) = by_what_was_recorded(traces, np.flatnonzero(complete))
    assert said.startswith(f"{few} questions that lack calls have a graded answer of large")
    here, share = 160 - few, float(traces.correct[complete, 0, 1].mean())
    power: float = sum(
        float(binom.pmf(a, here, share) * binom.pmf(b, few, share - 0.2))
        for a in range(here - 20, here + 1)
        for b in range(few + 1)
        if fisher_exact(np.array([[a, here - a], [b, few - b]])).pvalue < 0.005 / 2
    )
    noticed = int(said.split(" of 100 cases")[0].rpartition(" ")[2])
    assert binomtest(noticed, 100, power).pvalue > 1e-3


@pytest.mark.slow
def test_recommend_and_calibrate_say_what_speaks_against_chance(tmp_path: Path) -> None:
    wrong, fair = (missing(lacking(600, 12, wrong=w), "chance") for w in (True, False))
    for log, says in ((wrong, "calls are not missing by chance"), (fair, "of 100 cases")):
        assert says in " ".join(ft.recommend(log, ft.Parity("large", 0.05)).found.notes)
        write_traces(path := tmp_path / "a.jsonl", log)
        run = CliRunner().invoke
        bundle = str(tmp_path / f"bundle{len(says)}")
        trained = ["train", str(path), "--policy", "pool-gain", "--out", bundle]
        assert run(app, trained).exit_code == 0
        proved = ["calibrate", str(path), "--bundle", bundle, "--missing", "chance"]
        assert says in run(app, proved).stderr


@pytest.mark.slow
def test_at_worst_a_needed_call_that_is_unknown_is_a_loss() -> None:
    """Where the small model was asked of half, it is proved to be wrong of the other half."""
    traces = only(pool(1_200, 6, hard=0.0), ("small", "large"))
    half = np.arange(1_200) % 2 == 0
    made = np.stack([half, np.ones(1_200, dtype=bool)], axis=1)
    log = questions(holes(traces, made))
    worst = missing(log.arrays, "worst")
    assert not ft.recommend(log, ft.Parity("large", 0.05)).found.nothing_cheaper
    found = ft.recommend(worst, ft.Parity("large", 0.05)).found
    assert found.nothing_cheaper
    assert found.certificate is not None
    assert found.certificate.n > 250
    alone = found.models["small"]
    assert alone is not None
    assert alone.accuracy < 0.6
    assert alone.cost_usd == pytest.approx(0.0001)


def test_unequal_probabilities_are_weighed() -> None:
    """Hard questions were drawn five times as often: unweighed, the loss seems twice what it is."""
    rng = np.random.default_rng(1)
    kept, loss = [], []
    delta, n = 0.1, 4_000
    for _ in range(100):
        hard = rng.random(n) < 0.25
        lost = rng.random(n) < np.where(hard, 0.2, 0.0)  # .05 of all questions
        probability = np.where(hard, 1.0, 0.2)
        drawn = rng.random(n) < probability
        weights = 0.2 / probability[drawn]
        same = ~lost[drawn][:, None]
        cost = np.zeros(same.shape, dtype=np.int64)
        agreeing = Agreeing(cost, same, "large", weights=weights)
        paired = Paired(cost, same, np.ones(len(same), bool), weights=weights)
        kept.append(agreement_p_values(agreeing, 0.05)[0] <= delta)
        loss.append(parity_p_values(paired, 0.08)[0] <= delta)
        assert parity_p_values(paired, 0.05)[0] == pytest.approx(agreement_p_values(agreeing, 0.05))
    assert binomtest(sum(kept), 100, delta, alternative="greater").pvalue > 0.01
    assert sum(loss) > 50


def test_unweighed_the_same_questions_would_prove_nothing() -> None:
    lost = np.repeat([True, False], [400, 600])[:, None]  # 400 of 500 hard ones of a thousand
    weights = np.repeat([0.02, 1.0], [500, 500])
    cost = np.zeros(lost.shape, dtype=np.int64)
    assert agreement_p_values(Agreeing(cost, ~lost, "large"), 0.1)[0] > 0.9
    assert agreement_p_values(Agreeing(cost, ~lost, "large", weights=weights), 0.1)[0] < 0.01


@pytest.mark.slow
def test_recorded_probabilities_reach_the_proof() -> None:
    traces = only(pool(1_500, 9), ("small", "large"))
    hard = ~traces.correct[:, 0, 0]
    probability = np.where(hard, 1.0, 0.5)
    drawn = np.random.default_rng(0).random(1_500) < probability
    lot = np.full(traces.made.shape, np.nan, dtype=np.float32)
    lot[:, 0, 1] = probability
    made = np.stack([np.ones(1_500, dtype=bool), drawn], axis=1)
    log = replace(holes(traces, made), asked_probability=np.where(made[:, None], lot, np.nan))
    found = ft.recommend(questions(log), ft.Agreement("large", 0.1)).found
    assert found.certificate is not None
    assert found.certificate.asked_of is not None
    assert found.certificate.asked_of.weighted
    assert found.held_out  # some only measure, as no interval is known for those that prove
    assert found.sizes["report"] > 0
    assert "count by the probability with which each was drawn" in str(found.certificate)
    with pytest.raises(InputError, match="drawn with different probabilities"):
        ft.recommend(questions(log), ft.Selective(0.9), reference="large")
    assert "not missing by chance" not in " ".join(found.notes)
    alone = found.models["small"]
    assert alone is not None
    whole = float(traces.correct[:, 0, 0].mean())
    drawn_ones = float(traces.correct[drawn, 0, 0].mean())
    assert abs(alone.accuracy - whole) < abs(alone.accuracy - drawn_ones)


def test_figures_are_of_all_questions_whatever_their_chances_to_be_drawn() -> None:
    """Over many logs the mean of what is measured is the truth of all, not of those drawn."""
    gaps = []
    for seed in range(200):
        traces = only(pool(300, seed), ("small", "large"))
        probability = np.where(traces.correct[:, 0, 0], 0.4, 1.0)
        drawn = np.random.default_rng(10_000 + seed).random(300) < probability
        lot = np.full(traces.made.shape, np.nan, dtype=np.float32)
        lot[:, 0, 1] = probability
        log = replace(traces, asked_probability=lot).take(np.flatnonzero(drawn))
        rows = alike(log, np.arange(len(log)))
        gaps.append(log.correct[rows, 0, 0].mean() - traces.correct[:, 0, 0].mean())
        assert alike(traces, np.arange(300)).tolist() == list(range(300))
    error = float(np.std(gaps)) / np.sqrt(len(gaps))
    assert abs(float(np.mean(gaps))) < 3 * error


def by_difficulty(traces: TraceArrays, seed: int) -> BoolArray:
    """Ask the large model where the small one is wrong, mostly; elsewhere seldom."""
    chance = np.where(traces.correct[:, 0, 0], 0.4, 0.9)
    there = np.random.default_rng(10_000 + seed).random(len(traces)) < chance
    return np.stack([np.ones_like(there), np.ones_like(there), there], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("holes_by", ["chance", "nobody says", "difficulty"])
def test_a_promise_holds_of_the_questions_that_it_is_about(holes_by: str) -> None:
    """What is proved is true of fresh questions of that kind but in a tenth of draws at most."""
    broken, draws = 0, 40
    fresh = pool(20_000, 999)
    if holes_by == "difficulty":
        fresh = fresh.take(np.flatnonzero(by_difficulty(fresh, 0).all(axis=1)))
    for seed in range(draws):
        some = pool(700, seed)
        hard = holes_by == "difficulty"
        made = by_difficulty(some, seed) if hard else asked(700, (1.0, 0.8, 0.9), seed)
        log = questions(holes(some, made, CHANCE if holes_by == "chance" else -1))
        found = ft.recommend(log, ft.Parity("large", 0.03)).found
        if found.nothing_cheaper:
            continue
        certificate = found.certificate
        assert certificate is not None
        assert certificate.asked_of is not None
        theirs = ft.Policy(found.bundle).evaluate(
            questions(only(fresh, certificate.asked_of.models))
        )
        gained = theirs.value.gained
        assert gained is not None
        broken += gained < -0.03
    assert binomtest(broken, draws, 0.1, alternative="greater").pvalue > 0.01


PROMISES = {
    "coverage": ft.Coverage(0.9),
    "pac": ft.Coverage(0.9, delta=0.1),
    "selective": ft.Selective(0.9),
    "escalated": ft.Selective(0.9, escalate="large", epsilon=0.1),
    "parity": ft.Parity("large", 0.1),
    "agreement": ft.Agreement("large", 0.2),
    "budget": ft.Budget(usd=0.0021, most_usd=0.01),
}


@pytest.mark.slow
@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
@pytest.mark.parametrize("why", [CHANCE, -1], ids=["chance", "unknown"])
def test_every_promise_is_that_of_the_questions_cut_by_hand(
    promise: Promise, why: int, fitted: ft.Policy
) -> None:
    """With holes it is what the questions that all were asked give by themselves, and says so."""
    held = pool(500, 21)
    made = asked(500, (0.9, 0.8, 0.85), 3)
    by_hand = fitted.calibrate(questions(held.take(np.flatnonzero(made.all(axis=1)))), promise)
    found = fitted.calibrate(questions(holes(held, made, why)), promise)
    assert found.bundle.kappa == by_hand.bundle.kappa
    one, other = found.certificate, by_hand.certificate
    assert one is not None
    assert other is not None
    assert (one.promise, one.n, one.kappa) == (other.promise, other.n, other.kappa)
    assert other.asked_of is None
    assert one.asked_of is not None
    assert one.asked_of.questions == int(made.all(axis=1).sum())
    test = pool(300, 22)
    lacking = holes(test, asked(300, (0.9, 0.9, 0.9), 4))
    measured = found.evaluate(questions(lacking)).metrics
    assert (
        measured
        == found.evaluate(
            questions(test.take(np.flatnonzero(lacking.made[:, 0].all(axis=1))))
        ).metrics
    )


@pytest.fixture(scope="module")
def fitted() -> ft.Policy:
    return ft.fit("agreement-cascade", questions(pool(400, 20)))


def unanswered(traces: TraceArrays, share: float, seed: int = 0) -> TraceArrays:
    """Return questions of which a share was asked of everyone, and nobody could answer them."""
    silent = (np.random.default_rng(20_000 + seed).random(len(traces)) < share)[:, None, None]
    return replace(
        traces,
        answer=np.where(silent, NO_ANSWER, traces.answer).astype(np.int16),
        correct=traces.correct & ~silent,
    )


@pytest.mark.slow
def test_what_nobody_could_answer_is_evidence() -> None:
    """No answer agrees with none: where a fifth has none, .85 of agreement is no longer there."""
    whole, log = only(pool(900, 3, hard=0.0), ("small", "large")), ft.Agreement("large", 0.12)
    assert not ft.recommend(questions(whole), log).found.nothing_cheaper
    silent = unanswered(whole, 0.2)
    found = ft.recommend(questions(silent), log).found
    assert sum(found.sizes.values()) == 900
    assert found.nothing_cheaper
    assert any("large gave no answer to" in note for note in found.notes)


@pytest.mark.slow
def test_a_question_that_nobody_can_answer_is_neither_lost_nor_won() -> None:
    whole = only(pool(900, 3, hard=0.0), ("small", "large"))
    found = ft.recommend(questions(unanswered(whole, 0.5)), ft.Parity("large", 0.05)).found
    assert found.certificate is not None
    assert found.certificate.promises
    assert sum(found.sizes.values()) == 900
    theirs = found.models["large"]
    assert theirs is not None
    assert theirs.accuracy == pytest.approx(0.5, abs=0.06)
