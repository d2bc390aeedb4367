"""Each question does one thing: what is recommended never rests on a question twice."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_pool import marked, pool, questions, ungraded
from msgspec import structs
from question_parts import proved_bundle

import farthing as ft
from farthing.api.rendering import drawn
from farthing.errors import InputError, TooFewTracesError, UnknownNameError
from farthing.methods.base import Dataset
from farthing.methods.cards import card
from farthing.promises.base import Promise
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.coverage import Coverage
from farthing.promises.kinds.parity import Parity
from farthing.promises.kinds.selective import Selective
from farthing.promises.kinds.split import SplitPromise
from farthing.recommendation import candidates, plan, splits
from farthing.recommendation.evaluate import evaluate, evaluate_in_memory
from farthing.recommendation.played import Questions, ReportingQuestions
from farthing.recommendation.recommend import recommend
from farthing.recommendation.record import Recommendation
from farthing.recommendation.savings import SingleModels
from farthing.recommendation.splits import FourWaySplit, Roles, as_played, split_four_ways
from farthing.reports.recommend import screen
from farthing.traces.arrays import TraceArrays
from farthing.traces.fingerprint import fingerprint, question_hashes

QUICK = ("agreement-cascade", "always", "micp", "ucci", "stopping", "fixed", "lazy")
LARGE = Parity("large", "0.05", "0.1")
ESCALATED = Selective("0.8", "0.2", "large", "0.05")
SETS = Coverage("0.8")
"""Of which questions choose the method, and others measure."""
NOBODY_CHOOSES = Roles(choose=False, measure=False)
N, HELD_OUT = 700, 98


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few methods take part, so that it takes a moment."""
    enter(monkeypatch, QUICK)


def enter(patch: pytest.MonkeyPatch, names: Sequence[str]) -> None:
    patch.setattr(candidates, "cards", lambda: [card(name) for name in names])


def asked_of(
    traces: TraceArrays, asked: Promise | None = LARGE, **options: object
) -> Recommendation:
    return recommend(Dataset("made up", traces), asked, **options)  # type: ignore[arg-type]


# who does what


@pytest.mark.slow
@settings(deadline=None)
@given(
    drawn=st.lists(st.integers(-1, 2), min_size=40, max_size=300),
    seed=st.integers(0, 3),
    roles=st.sampled_from([Roles(), NOBODY_CHOOSES, Roles(choose=False)]),
)
def test_parts_are_disjoint_and_keep_to_the_marks(
    drawn: list[int], seed: int, roles: Roles
) -> None:
    split = np.array(drawn, dtype=np.int8)
    traces = replace(pool(len(drawn)), split=split)
    try:
        parts = split_four_ways(traces, seed, roles)
    except TooFewTracesError:
        needed = 5 * (1 + roles.choose)
        few = [np.sum(split == 0) < 5, np.sum(split != 0) < needed + 5 * roles.measure]
        assert any([*few, np.sum(split == 1) < needed, np.sum(split == 2) < 5])
        return
    rows = np.concatenate([parts.train, parts.choose, parts.prove, parts.report])
    assert len(np.unique(rows)) == len(rows)
    sizes = parts.distinct(traces.content)
    measured = roles.measure or len(set(drawn) - {-1}) == 3
    wanted = {"train", "prove", *["choose"] * roles.choose, *["report"] * measured}
    assert {name for name, size in sizes.items() if size} == wanted
    assert min(sizes[name] for name in wanted) >= splits.FEWEST
    train = np.flatnonzero(split == 0)
    if train.size:
        assert parts.train.tolist() == train.tolist()
    if len(set(drawn) - {-1}) == 3:
        assert parts.report.tolist() == np.flatnonzero(split == 2).tolist()
        assert set(split[np.append(parts.choose, parts.prove)].tolist()) == {1}
    else:
        assert len(rows) == len(drawn)


def test_incomplete_questions_do_nothing() -> None:
    rounds = ft.generate("hotpotqa-llama2-7b", 100).arrays
    recorded = np.where(np.arange(100) % 2, rounds.horizon, 1).astype(np.int16)
    parts = split_four_ways(replace(rounds, recorded=recorded), 0)
    rows = np.concatenate([parts.train, parts.choose, parts.prove, parts.report])
    assert sorted(rows.tolist()) == list(range(1, 100, 2))


@pytest.mark.slow
@pytest.mark.parametrize("asked", [LARGE, ESCALATED, SETS], ids=["parity", "selective", "sets"])
def test_the_certificate_is_of_the_proving_questions_and_the_figures_of_the_last(
    asked: Promise,
) -> None:
    """The bundle keeps what each question did, and no figure of the chosen one is of others."""
    traces, chooses = pool(N), asked is SETS
    found = asked_of(traces, asked, holdout=HELD_OUT, reference="large")
    parts = split_four_ways(traces, 0, Roles(choose=chooses, measure=False, holdout=HELD_OUT))
    assert found.sizes == parts.distinct(traces.content)
    assert found.sizes["report"] == HELD_OUT
    assert found.held_out
    proved_on(found, traces, parts, chooses=chooses)
    report = traces.take(parts.report)
    played = as_played("these", found.bundle, traces).take(parts.report)
    again = evaluate_in_memory(found.bundle, ReportingQuestions(report, played))
    assert found.found.metrics == again.metrics
    assert found.found.value == again.value == found.bundle.value
    assert found.found.judged is not None
    assert found.found.judged == again.judged
    assert again.notes == ()
    assert found.models == SingleModels.of(report).figures()
    said = found.to_json()
    assert said["held_out"] is True
    assert said["chosen"]["cost_usd"] == again.metrics["cost_usd"]
    assert said["chosen"]["accuracy"] == again.metrics["accuracy"]
    assert said["saved"] == again.value.saved


@pytest.mark.slow
def test_where_none_is_held_out_the_figures_are_of_the_proving_questions_and_say_so() -> None:
    """They are those of an evaluation on these; no verdict, and intervals that allow for it."""
    traces = pool(N)
    found, parts = asked_of(traces), split_four_ways(traces, 0, NOBODY_CHOOSES)
    assert found.sizes == parts.distinct(traces.content)
    assert (found.sizes["choose"], found.sizes["report"], found.held_out) == (0, 0, False)
    assert len(parts.train) + len(parts.prove) == N
    proved_on(found, traces, parts, chooses=False)
    prove = traces.take(parts.prove)
    again = evaluate_in_memory(found.bundle, ReportingQuestions(prove, prove))
    assert found.found.metrics == again.metrics
    assert [f"the {len(prove)} test questions set its" in note for note in again.notes] == [True]
    assert found.models == SingleModels.of(prove).figures()
    assert (found.found.judged, found.kept) == (None, True)
    ours, plain = found.found.value, again.value
    assert found.bundle.value == ours
    assert (ours.part, plain.part) == ("calibrate", "test")
    same = {"part": plain.part, "saved_interval": plain.saved_interval}
    assert structs.replace(ours, **same, gained_interval=plain.gained_interval) == plain
    assert ours.saved_interval is not None
    assert plain.saved_interval is not None
    assert ours.saved_interval[0] < plain.saved_interval[0]
    assert plain.saved_interval[1] < ours.saved_interval[1]
    said = found.to_json()
    assert (said["held_out"], said["chosen"]["verdict"]) == (False, None)
    assert said["chosen"]["cost_usd"] == again.metrics["cost_usd"]
    assert said["chosen"]["accuracy"] == again.metrics["accuracy"]
    assert said["saved"] == again.value.saved
    assert tuple(said["saved_interval"]) == ours.saved_interval


def proved_on(
    found: Recommendation, traces: TraceArrays, parts: FourWaySplit, *, chooses: bool
) -> None:
    """See that the bundle knows who did what, and that the proof is of those that prove."""
    did = {"train": parts.train, "calibrate": parts.prove}
    did |= {"choose": parts.choose} if chooses else {}
    for name, rows in did.items():
        assert found.bundle.questions[name] == question_hashes(traces.take(rows)), name
    if not chooses:  # of several that are proved, those that prove take the cheapest
        several = sum(one.share > 0 for one in found.trials) > 1
        proved = found.bundle.questions["calibrate"]
        assert found.bundle.questions.get("choose", frozenset()) == (proved if several else set())
    certificate = found.certificate
    assert certificate is not None
    assert certificate.promises
    assert certificate.n == len(parts.prove)
    played = as_played("these", found.bundle, traces)
    assert certificate.fingerprint == fingerprint(played.take(parts.prove))


# what is chosen


@pytest.mark.slow
def test_the_one_that_is_expected_to_cost_least_is_chosen() -> None:
    found = asked_of(pool(N))
    costs = [one.expected_usd for one in found.trials]
    assert costs == sorted(costs)
    assert found.name == found.trials[0].name
    assert found.to_json()["saved"] > 0.5
    assert found.kept


@pytest.mark.slow
def test_the_same_seed_recommends_the_same() -> None:
    one, other, third = (asked_of(pool(200), seed=seed).to_json() for seed in (1, 1, 2))
    assert one == other != third


@pytest.mark.slow
def test_where_nothing_is_proved_the_reference_answers_and_is_not_tested() -> None:
    traces = pool(300)
    found = asked_of(traces, Parity("large", "0.0001"))
    assert found.name == "always-large"
    assert found.certificate is not None
    assert not found.certificate.promises
    assert "so large answers, which is always valid" in found.certificate.sentence()
    said = found.to_json()
    assert said["chosen"]["method"] == "always-large"
    assert (said["chosen"]["kept"], said["chosen"]["verdict"], said["saved"]) == (True, None, 0.0)
    assert said["chosen"]["cost_usd"] == said["reference"]["cost_usd"]
    assert said["chosen"]["accuracy"] == said["reference"]["accuracy"]
    assert said["notes"]
    prove = traces.take(split_four_ways(traces, 0, NOBODY_CHOOSES).prove)
    assert found.found.value.yours.cost_nano == 2_000_000 * len(prove)
    held = asked_of(traces, Parity("large", "0.0001"), holdout=60)
    parts = split_four_ways(traces, 0, Roles(choose=False, measure=False, holdout=60))
    report = traces.take(parts.report)
    assert (held.name, len(report)) == ("always-large", 60)
    assert evaluate_in_memory(
        held.bundle, ReportingQuestions(report, report)
    ).value.yours.cost_nano == 2_000_000 * len(report)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "holdout"),
    [
        (None, None),
        (None, 50),
        (Parity(None, "0.1"), None),
        (Parity(None, "0.1"), 50),
        (Agreement(), None),
        (Agreement(), 50),
        (Coverage("0.5"), None),
    ],
)
def test_an_unnamed_reference_is_guessed_from_none_that_proves_or_measures_and_says_so(
    asked: Promise | None, holdout: int | None
) -> None:
    """Of coverage questions that choose say so, of parity and agreement those that train.

    Elsewhere most is paid for small, and it alone is right.
    """
    traces, chooses = pool(400), isinstance(asked, Coverage)
    parts = split_four_ways(traces, 0, Roles(choose=chooses, measure=chooses, holdout=holdout))
    others = parts.train if chooses else parts.choose
    rows = np.concatenate([others, parts.prove, parts.report])
    cost, correct = traces.cost_nano.copy(), traces.correct.copy()
    cost[rows, 0, 0] = 9_000_000
    correct[rows] = np.array([True, False, False])
    found = asked_of(replace(traces, cost_nano=cost, correct=correct), asked, holdout=holdout)
    assert (found.reference, found.guessed) == ("large", True)
    assert found.to_json()["reference"]["guessed"] is True
    assert found.notes[0].startswith("name the model you pay for with --reference; large is a g")
    assert found.notes[0] in found.caveats


@pytest.mark.slow
def test_a_reference_that_is_named_is_no_guess() -> None:
    traces = pool(400)
    named = asked_of(traces, Coverage("0.5"), reference="medium")
    assert (named.reference, named.guessed) == ("medium", False)
    assert not any("guess" in note for note in named.notes)
    assert asked_of(traces, None, reference="medium").bundle.certificate.promise.reference == (  # type: ignore[union-attr]
        "medium"
    )


@pytest.mark.slow
def test_whoever_pays_for_large_hears_it_where_all_models_are_equally_good() -> None:
    """And is not told to go on asking small, which nobody said is paid for."""
    right = (np.arange(N) % 10 != 0)[:, None, None]
    equal = replace(pool(N), correct=np.repeat(right, 3, axis=2))
    equal = replace(equal, answer=np.where(equal.correct, 0, 1).astype(np.int16))
    found = asked_of(equal, None)
    advice = ft.recommend(questions(equal))
    text = " ".join(f"{advice} {advice.details()}".split())
    assert (found.reference, found.nothing_cheaper) == ("large", False)
    assert found.to_json()["saved"] == pytest.approx(0.95)
    assert "You pay $2.00 per 1,000 requests (large alone)" in text
    assert "Saved 95.0 % (" in text
    assert "large alone (guessed)" in text
    assert ", proved" in text
    assert "you pay for with reference; large is a guess" in text
    named = ft.recommend(questions(equal), reference="large")
    assert "large alone (reference)" in named.details()
    assert "guess" not in f"{named} {named.details()}"


def test_what_takes_no_part_says_who_is_paid_for_too() -> None:
    """Of rounds that were not all recorded nothing is trained, and still they were paid for."""
    traces = pool(200)
    parts = split_four_ways(traces, 0)
    idle = FourWaySplit(parts.train[:-50], parts.choose, parts.prove, parts.report)
    rows = plan.who_say(len(traces), idle)
    assert set(rows.tolist()) == {*parts.choose.tolist(), *parts.train[-50:].tolist()}


@pytest.mark.slow
def test_logs_that_nobody_graded_agree_with_the_dearest_model() -> None:
    found = asked_of(ungraded(pool(2 * N)), None)
    assert found.reference == "large"
    assert found.certificate is not None
    assert found.certificate.promises
    assert "the one that large would have given" in found.certificate.sentence()
    assert found.to_json()["reference"]["accuracy"] == 1.0  # it agrees with itself


def test_rounds_are_covered_nine_times_of_ten() -> None:
    found = recommend(ft.generate("hotpotqa-llama2-7b", 400).dataset)
    assert found.certificate is not None
    assert isinstance(found.certificate.promise, SplitPromise)
    assert found.certificate.promise.alpha == Fraction(1, 10)
    assert found.to_json()["reference"] is None  # nobody was recorded alone
    assert found.to_json()["saved"] is None


@pytest.mark.slow
def test_a_deadline_keeps_slow_methods_out() -> None:
    traces = pool(N)
    found = asked_of(traces, Parity("large", "0.3"), deadline_s=2.0)
    assert found.found.value.yours.latency_s is not None
    assert found.found.value.yours.latency_s[1] <= 2.0
    skipped = dict(found.skipped)
    assert "one question of twenty takes more than" in skipped["always-large"]
    assert all(one.latency_s is not None and one.latency_s <= 2.0 for one in found.trials)
    with pytest.raises(InputError, match=r"and 0\.1 were given; and 4 more"):
        asked_of(traces, deadline_s=0.1)
    silent = replace(traces, signals={"confidence": traces.signals["confidence"]})
    with pytest.raises(InputError, match="its latency was not recorded"):
        asked_of(silent, deadline_s=2.0)


@pytest.mark.slow
def test_a_reference_that_is_too_slow_says_so() -> None:
    found = asked_of(pool(N), Parity("large", "0.0001"), deadline_s=1.3)
    assert found.name == "always-large"
    assert any("1.3 s were given: nothing that is proved is faster" in n for n in found.notes)


# what is refused


@pytest.mark.slow
def test_what_cannot_be_recommended_is_refused() -> None:
    traces = pool(100)
    with pytest.raises(UnknownNameError, match="unknown role 'larg'; did you mean 'large'"):
        asked_of(traces, Parity("larg"))
    with pytest.raises(UnknownNameError, match="unknown role 'larg'"):
        asked_of(traces, Coverage("0.9"), reference="larg")
    with pytest.raises(TooFewTracesError, match="there are 39 complete questions, and 40"):
        asked_of(pool(39))
    with pytest.raises(TooFewTracesError, match="0 to prove"):
        asked_of(marked(traces, 0))
    with pytest.raises(InputError, match="nothing can be recommended for a promise of budget"):
        asked_of(traces, ft.Budget(0.001, 0.01))
    with pytest.raises(InputError, match="has no reference that could answer instead"):
        asked_of(traces, Selective("0.9999"))


@pytest.mark.slow
def test_questions_that_chose_prove_nothing_later(tmp_path: Path) -> None:
    """A bundle remembers them, calibration refuses them, and evaluation says that it met them."""
    traces = pool(N)
    found, parts = asked_of(traces, SETS), split_four_ways(traces, 0)
    chose = traces.take(parts.choose)
    met = evaluate_in_memory(found.bundle, ReportingQuestions(chose, chose)).notes
    assert [f"the {len(chose)} test questions chose the method" in note for note in met] == [True]
    with pytest.raises(InputError, match="calibration questions chose the method"):
        proved_bundle(found.bundle, LARGE, Questions(chose, chose), Questions(chose, chose))
    ft.Policy(found.bundle).save(tmp_path / "b")
    assert ft.load(tmp_path / "b").bundle.questions == found.bundle.questions
    assert ft.load(tmp_path / "b").value == found.found.value


@pytest.mark.slow
def test_where_nobody_chose_those_that_trained_prove_nothing_later(tmp_path: Path) -> None:
    """They said what is tried, and who proves may prove again."""
    traces = pool(N)
    found, parts = asked_of(traces), split_four_ways(traces, 0, NOBODY_CHOOSES)
    trained, proved = traces.take(parts.train), traces.take(parts.prove)
    met = evaluate_in_memory(found.bundle, ReportingQuestions(trained, trained)).notes
    assert [f"the {len(trained)} test questions trained" in note for note in met] == [True]
    with pytest.raises(InputError, match="calibration questions trained the policy"):
        proved_bundle(found.bundle, LARGE, Questions(trained, trained), Questions(trained, trained))
    again = proved_bundle(
        found.bundle, LARGE, Questions(trained, trained), Questions(proved, proved)
    )
    assert again.certificate.n == len(proved)
    ft.Policy(found.bundle).save(tmp_path / "b")
    assert ft.load(tmp_path / "b").bundle.questions == found.bundle.questions
    assert ft.load(tmp_path / "b").value == found.found.value


@pytest.mark.slow
@pytest.mark.parametrize("asked", [LARGE, ESCALATED, SETS], ids=["parity", "selective", "sets"])
def test_evaluation_measures_what_the_recommendation_measured(
    tmp_path: Path, asked: Promise
) -> None:
    """On all questions of the file: those that the bundle has not met."""
    traces = pool(N)
    found = asked_of(traces, asked, holdout=HELD_OUT)
    ft.Policy(found.bundle).save(tmp_path / "b")
    again = evaluate(tmp_path / "b", traces)
    assert again.sizes["test"] == found.sizes["report"] == HELD_OUT
    assert again.metrics == found.found.metrics
    assert again.notes == ()
    chooses = asked is SETS
    parts = split_four_ways(traces, 0, Roles(choose=chooses, measure=chooses, holdout=HELD_OUT))
    known = np.sort(np.concatenate([parts.train, parts.prove]))
    with pytest.raises(TooFewTracesError, match="has met every one of these"):
        evaluate(tmp_path / "b", traces.take(known))


@pytest.mark.slow
def test_what_held_nothing_out_has_met_all_of_its_questions(tmp_path: Path) -> None:
    """So that it is not measured on what proved it as if that were new."""
    traces = pool(N)
    ft.Policy(asked_of(traces).bundle).save(tmp_path / "b")
    with pytest.raises(TooFewTracesError, match="has met every one of these"):
        evaluate(tmp_path / "b", traces)
    assert evaluate(tmp_path / "b", pool(200, seed=1)).sizes["test"] == 200


def test_who_asks_one_model_alone_is_called_by_it() -> None:
    """The cheapest answers as the dearest does, so nobody else is asked, whatever the method."""
    drawn_pool = pool(500)
    alike = replace(
        drawn_pool,
        answer=np.zeros_like(drawn_pool.answer),
        correct=np.ones_like(drawn_pool.correct),
    )
    found = recommend(Dataset("log", alike), Parity("large", "0.05"))
    for name, said in (("always-small", ""), ("x", "; that is all that x asks")):
        headline = drawn(screen(replace(found, name=name), "log", None)).partition("\n")[0]
        assert headline == f"log: use small alone{said}"


@pytest.mark.slow
def test_the_door_returns_the_policy_and_prints_one_screen() -> None:
    advice = ft.recommend(questions(pool(N)), ft.Parity("large", epsilon=0.05))
    assert advice.policy.certificate == advice.certificate
    assert advice.policy.method == advice.found.name
    screen = str(advice).splitlines()
    saved = advice.found.found.value.saved
    assert saved is not None
    assert screen[0] == f"made up: use {advice.found.name} and save {100 * saved:.0f} %"
    assert max(map(len, screen)) <= 80
    assert len(screen) <= 15
    for said in ("large alone (reference)", "small alone", "expected USD per 1,000"):
        assert said in advice.details(), said


@pytest.mark.slow
def test_a_saving_that_chance_explains_is_no_headline() -> None:
    found = asked_of(pool(N), Parity("large", "0.1"))
    assert found.requests_per_day is None
    doubtful = replace(found, found=replace(found.found, saved_within=(-0.01, 0.2)))
    said = drawn(screen(doubtful, "log", None))
    assert said.startswith(f"log: no saving is proved; {found.name} may cost as much as large\n")
    assert "(−1.0 % to 20.0 %, 90 % confidence)" in said
    a_day = drawn(screen(replace(found, requests_per_day=100.0), "log", None))
    assert "You pay        $2.00 per 1,000 requests, $6.00 a month (large alone)" in a_day


@pytest.mark.slow
def test_a_cheaper_model_that_is_as_good_in_training_is_named_where_nothing_is_proved() -> None:
    """By the questions that train, and only there."""
    traces, asked = pool(N), Parity("large", "0.0001")
    assert not any("--reference small" in note for note in asked_of(traces, asked).notes)
    parts = split_four_ways(traces, 0, Roles(choose=False, measure=False))
    correct = traces.correct.copy()
    small, large = map(traces.roles.index, ("small", "large"))
    correct[parts.train, 0, small] = correct[parts.train, 0, large]
    found = asked_of(replace(traces, correct=correct), asked)
    assert found.nothing_cheaper
    assert sum("--reference small" in note for note in found.notes) == 1
    (note,) = (note for note in found.notes if "--reference small" in note)
    assert note.startswith(f"of the {len(parts.train)} questions that trained, small is right on")


@pytest.mark.slow
def test_one_model_that_beats_the_method_is_the_headline() -> None:
    found = asked_of(pool(N), Parity("large", "0.1"))
    value = replace(found.found, value=structs.replace(found.found.value, instead="small"))
    assert drawn(screen(found, "log", None)).startswith(f"log: use {found.name}")
    better = replace(found, found=value)
    assert drawn(screen(better, "log", None)).startswith("log: use small alone;")


@pytest.mark.slow
def test_a_log_of_which_some_is_graded_says_why_agreement_is_promised() -> None:
    traces = pool(N)
    some = np.zeros_like(traces.correct)
    some[:37] = True
    some_graded = replace(traces, correct=traces.correct & ~some, ungraded=some)
    notes = asked_of(some_graded, None).notes
    assert sum(note.startswith(f"37 of {N:,} questions are not graded") for note in notes) == 1
    for other in (traces, ungraded(traces)):
        assert not any("not graded" in note for note in asked_of(other, None).notes)


@pytest.mark.slow
def test_where_nothing_is_proved_questions_that_only_measure_are_offered() -> None:
    hard = Parity("large", "0.0001")
    found = recommend(Dataset("made up", pool(N)), hard, holdout=50)
    assert (found.nothing_cheaper, found.sizes["report"]) == (True, 50)
    assert "50 questions only measure; with --holdout 0 they prove as well" in found.notes
    assert "no saving is proved; keep asking large" in drawn(screen(found, "log", None))
    without = recommend(Dataset("made up", pool(N)), hard, holdout=0)
    assert not any("--holdout" in note for note in without.notes)
