import json
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import EntryPoints, entry_points
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from farthing.errors import CalibrationError, MissingPackageError
from farthing.promises import certificate, wording
from farthing.promises.answers import Answers, answers_above
from farthing.promises.certificate import AskedOf, Certificate
from farthing.promises.kinds import budget, groups, none, pac, parity, selective, split
from farthing.promises.kinds.budget import Spending
from farthing.promises.kinds.coverage import Coverage
from farthing.promises.kinds.groups import Grouped
from farthing.promises.kinds.selective import SelectivePromise
from farthing.promises.kinds.split import SplitPromise
from farthing.promises.levels import exact_level, exact_text
from farthing.promises.observed import Facts
from farthing.promises.paired import Paired
from farthing_lab.promises import online, weighted
from farthing_lab.promises.online import OnlineThreshold
from farthing_lab.promises.weighted import Weighted

RNG = np.random.default_rng(0)
SCORES = RNG.random(200)
GROUP = np.repeat([0, 1, 2], [100, 95, 5])
NAMES = ("law", "art", "physics")
MARK = "0" * 64
SPLIT = split.certify(SCORES, 0.1, fingerprint=MARK)
PAC = pac.certify(SCORES, "0.1", "1/20", fingerprint=MARK, population="solvable")
GROUPS = groups.certify(Grouped(SCORES, GROUP, NAMES), "0.1", fingerprint=MARK)
ONLINE = online.certify(OnlineThreshold(step=0.5, updates=20_000), "0.1", fingerprint=MARK)
NOTHING = none.certify(0.3, fingerprint=MARK)
INFINITE = split.certify(np.full(200, np.inf), "1/3", fingerprint=MARK)
FEW = split.certify(SCORES[:5], "0.1", fingerprint=MARK)
RIGHT = RNG.random((200, 3)) < [0.5, 0.97, 0.99]
COST = np.tile([1_000_000, 2_000_000, 9_000_000], (200, 1))
MIX = Weighted(SCORES, np.where(GROUP == 0, 2.0, 0.5), 2.0)
ANSWERS = answers_above(SCORES, SCORES > 0.3, np.array([0.5, 0.2, 0.1]))
PAIRED = Paired(COST, RIGHT, RIGHT[:, 2])
SPENDING = Spending(COST, RIGHT, 20_000_000)
PROMISE = SplitPromise(alpha=Fraction(1, 10), k=20)
WEIGHTED = weighted.certify(MIX, "0.1", fingerprint=MARK)
SELECTIVE = selective.certify(ANSWERS, "0.1", "0.05", fingerprint=MARK)
PARITY = parity.certify(PAIRED, "0.06", "0.1", fingerprint=MARK)
BUDGET = budget.certify(SPENDING, 4_000_000, "0.1", fingerprint=MARK)
MENUS = [SELECTIVE, PARITY, BUDGET]
ALL = [SPLIT, PAC, GROUPS, ONLINE, NOTHING, INFINITE, FEW, WEIGHTED, *MENUS]


def kind(certificate: Certificate) -> str:
    return str(certificate.to_json()["promise"]["kind"])


def split_of(certificate: Certificate) -> SplitPromise:
    assert isinstance(certificate.promise, SplitPromise)
    return certificate.promise


@pytest.mark.parametrize("certificate", ALL, ids=kind)
def test_json_round_trip(certificate: Certificate) -> None:
    text = json.dumps(certificate.to_json(), allow_nan=False)
    assert Certificate.from_json(json.loads(text)) == certificate


def test_it_says_alpha_exactly_and_how_the_threshold_acts() -> None:
    levels = SPLIT.to_json()["promise"]["alpha"], PAC.to_json()["promise"]["delta"]
    assert (*levels, INFINITE.to_json()["promise"]["alpha"]) == ("0.1", "0.05", "1/3")
    assert (split_of(SPLIT).k, SPLIT.n, SPLIT.fingerprint) == (20, 200, MARK)
    assert INFINITE.kappa == np.inf
    assert INFINITE.acts_as == 1.0
    assert any("min(kappa, 1)" in line for line in INFINITE.conditional_on)
    assert any("exchangeable" in line for line in SPLIT.conditional_on)
    assert len(SPLIT.invalid_when) >= 4
    assert "Only covariate shift" in WEIGHTED.conditional_on[0]
    assert any("round 1 does not show" in end for end in WEIGHTED.invalid_when)


def test_the_interval_is_the_law_of_realised_coverage() -> None:
    """Of 2,000 calibrations on uniform scores 95 % realise a coverage inside it."""
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(2_000):
        made = split.certify(rng.random(200), "0.1", fingerprint=MARK)
        interval = split_of(made).interval
        assert interval
        inside += interval[0] <= 1 - made.kappa <= interval[1]
    assert abs(inside / 2_000 - 0.95) < 4 * np.sqrt(0.05 * 0.95 / 2_000)


SENTENCES = {
    "split": (
        SPLIT,
        (
            "A new question is covered with probability at least 0.9, on average over draws of the "
            "200 calibration questions: a right answer is in the returned set, or no model had one."
        ),
    ),
    "pac": (
        PAC,
        (
            "With confidence 0.95 in the draw of 200 questions, a new solvable question is covered "
            "with probability at least 0.9: a right answer is in the returned set."
        ),
    ),
    "groups": (
        GROUPS,
        (
            "A new question is covered with probability at least 0.9 within each of 3 groups "
            "(too few questions, so everything is returned: physics): a right answer is in the "
            "returned set, or no model had one."
        ),
    ),
    "online": (
        ONLINE,
        (
            "Over the 20000 updates of its stream the share of questions covered is within 0.0571 "
            "of 0.9, and nothing is promised once kappa is frozen: a right answer is in the "
            "returned set, or no model had one."
        ),
    ),
    "weighted": (
        WEIGHTED,
        (
            "A new question is covered with probability at least 0.9 under the target mix, if that "
            "differs only in what round 1 shows and the weights are right, on average over draws "
            "of the 200 calibration questions (worth 147): a right answer is in the returned set, "
            "or no model had one."
        ),
    ),
    "selective": (
        SELECTIVE,
        (
            "With confidence 0.95 in the draw of 200 questions, an answer that is given is right "
            "with probability at least 0.9: a confidence of 0.5 or more answers 112 of them, "
            "and the rest is left unanswered or escalated."
        ),
    ),
    "parity": (
        PARITY,
        (
            "With confidence 0.9 in the draw of 200 questions, the accuracy of the policy "
            "is above the reference model's minus 0.06."
        ),
    ),
    "budget": (
        BUDGET,
        (
            "With confidence 0.9 in the draw of 200 questions, the policy costs less "
            "than $0.004 a question in expectation."
        ),
    ),
    "unproved answers": (
        selective.certify(Answers(~RIGHT, ~RIGHT), "0.001", "0.05", fingerprint=MARK),
        (
            "200 calibration questions do not prove at confidence 0.95 that answers at any "
            "confidence are right with probability 0.999, so every question is left unanswered or "
            "escalated."
        ),
    ),
    "unproved parity": (
        parity.certify(Paired(COST, ~RIGHT, RIGHT[:, 2]), "0.02", "0.1", fingerprint=MARK),
        (
            "200 calibration questions do not prove at confidence 0.9 that anything cheaper "
            "is within 0.02 of the reference model's accuracy, so the reference model "
            "answers, which is always valid."
        ),
    ),
    "unproved budget": (
        budget.certify(SPENDING, 1_000, "0.1", fingerprint=MARK),
        (
            "200 calibration questions do not prove at confidence 0.9 that any setting "
            "costs less than $1e-06 a question, so none is chosen."
        ),
    ),
    "none": (NOTHING, "Nothing is promised: the threshold 0.3 was not calibrated."),
    "few": (
        FEW,
        (
            "5 calibration questions are too few to promise anything tighter than everything at "
            "alpha = 0.1, so every answer is returned."
        ),
    ),
    "short": (
        online.certify(OnlineThreshold(updates=10), "0.1", fingerprint=MARK),
        "10 updates are too few to promise anything about their stream.",
    ),
    "small groups": (
        groups.certify(Grouped(SCORES[-5:], GROUP[-5:], NAMES), "0.1", fingerprint=MARK),
        (
            "5 calibration questions are too few to promise anything tighter than everything at "
            "alpha = 0.1, so every answer is returned."
        ),
    ),
}


PLAIN = {
    "split": (
        "At least 90 of 100 new questions of the same kind get a right answer among those "
        "returned, or had none to find, on average over what chance gives one to calibrate on."
    ),
    "pac": (
        "At least 90 of 100 new questions of the same kind that can be solved get a right answer "
        "among those returned, and you may be 95 % sure of that."
    ),
    "groups": (
        "At least 90 of 100 new questions of each group get a right answer among those returned, "
        "or had none to find, on average over what chance gives one to calibrate on."
    ),
    "online": (
        "At least 90 of 100 questions of a long stream like this one get a right answer among "
        "those returned, or had none to find, give or take 5.71 of them."
    ),
    "weighted": (
        "At least 90 of 100 questions of the mix that is to come get a right answer among those "
        "returned, or had none to find, on average over what chance gives one to calibrate on."
    ),
    "selective": (
        "At most 10 of 100 answers that are given are wrong, and you may be 95 % sure of that; "
        "about 44 of 100 questions get no answer."
    ),
    "parity": (
        "Of 100 questions at most 6 fewer are answered right than by the reference model alone, "
        "and you may be 90 % sure of that."
    ),
    "budget": (
        "A thousand questions cost less than $4 on average, and you may be 90 % sure of that; how "
        "many are answered right is not promised."
    ),
    "unproved answers": "No answer may be trusted as often as was asked for, so none is given.",
    "few": "Nothing is left out to save money: every answer is paid for and returned.",
    "short": "Nothing is promised yet: the stream of questions was too short.",
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_words_say_what_happens_to_a_hundred_questions(name: str) -> None:
    assert SENTENCES[name][0].plain_language() == PLAIN[name]


@pytest.mark.parametrize("name", SENTENCES)
def test_one_plain_sentence_says_what_is_promised(name: str) -> None:
    certificate, sentence = SENTENCES[name]
    assert certificate.sentence() == sentence
    assert certificate.promises == (name == kind(certificate) != "none")


def test_a_budget_a_question_is_said_and_nothing_is_claimed_beyond_it() -> None:
    kept: dict[str, Any] = {"fingerprint": MARK, "question_budget_nano": 500_000}
    made = split.certify(SCORES, "0.1", **kept)
    assert made.sentence() == (
        f"{SENTENCES['split'][1]} This was calibrated under a budget of $0.0005 a question, and "
        "holds under that budget alone."
    )
    assert made.plain_language() == (
        f"{PLAIN['split']} That is with a budget of $0.0005 a question."
    )
    assert made.invalid_when[:-1] == SPLIT.invalid_when[:-1]
    assert made.invalid_when[-1] == (
        "Another budget than $0.0005 or a failed call stops an episode that the policy would have "
        "continued."
    )
    few = split.certify(SCORES[:5], "0.1", **kept)
    assert "so every answer that the budget pays for is returned." in few.sentence()
    assert few.plain_language().startswith("Nothing is promised: every answer that the budget")
    by_group = groups.certify(Grouped(SCORES, GROUP, NAMES), "0.1", **kept).sentence()
    assert "within each of 3 groups (too few questions to promise it in: physics)" in by_group


def test_a_promise_about_a_menu_has_no_threshold_that_would_leave_answers_out() -> None:
    assert [made.acts_as for made in MENUS] == [0, 0, 0]
    assert [made.to_json()["promise"]["point"] for made in MENUS] == [0, 1, 1]
    assert isinstance(SELECTIVE.promise, SelectivePromise)
    assert SELECTIVE.promise.threshold == 0.5


def test_a_menu_of_thresholds_gives_the_threshold_of_its_point() -> None:
    kappas = np.array([0.9, 0.6, 0.3])
    paired = Paired(COST, RIGHT, RIGHT[:, 2], "guide", kappas)
    made = parity.certify(paired, "0.06", "0.1", fingerprint=MARK)
    assert made.kappa == 0.6
    assert "above guide's minus 0.06" in made.sentence()
    spending = Spending(COST, RIGHT, 20_000_000, kappas)
    assert budget.certify(spending, 4_000_000, "0.1", fingerprint=MARK).kappa == 0.6
    answers = Answers(ANSWERS.answered, ANSWERS.correct, ANSWERS.thresholds, kappas)
    assert selective.certify(answers, "0.1", "0.05", fingerprint=MARK).kappa == 0.9
    assert budget.certify(spending, 1_000, "0.1", fingerprint=MARK).kappa == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kappa", "nan"),
        ("kappa", None),
        ("extra", 1),
        ("n", 0.5),
        ("promise", None),
        ("promise", {}),
        ("question_budget_nano", 0.5),
    ],
)
def test_what_is_no_certificate_is_refused(field: str, value: object) -> None:
    with pytest.raises(CalibrationError, match="not a certificate"):
        Certificate.from_json(SPLIT.to_json() | {field: value})
    with pytest.raises(CalibrationError, match="not a certificate"):
        Certificate.from_json([])


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("kind", "splitt", "unknown guarantee 'splitt'; did you mean 'split'?"),
        ("population", 3, "Expected `str`, got `int` - at `$.population`"),
        ("extra", 1, "unknown field `extra`"),
        ("k", 0.5, "Expected `int`, got `float` - at `$.k`"),
        ("alpha", "7", "give a number between 0 and 1, such as 0.1 - at `$.alpha`"),
        ("interval", [0.5, "nan"], "one of its numbers is NaN"),
    ],
)
def test_what_is_no_promise_is_refused_by_field(field: str, value: object, says: str) -> None:
    body = SPLIT.to_json()
    body["promise"] |= {field: value}
    with pytest.raises(CalibrationError, match="not a certificate") as refused:
        Certificate.from_json(body)
    assert says in str(refused.value)


OLD = """{"guarantee": "marginal", "kappa": 0.1, "alpha": "0.1", "delta": null, "epsilon": null,
 "budget_nano": null, "most_nano": null, "reference": null, "setting": null, "settings": 0,
 "threshold": null, "answered": null, "effective_n": null, "n": 200, "k": 20, "given": "all",
 "interval": [0.8556233600231478, 0.937840633745934], "bound": null, "groups": {},
 "conditional_on": ["The policy acts with min(kappa, 1)."],
 "invalid_when": ["The kind or mix of questions changes."], "fingerprint": "cccccccc"}"""


def test_a_certificate_of_the_old_format_is_refused_with_the_remedy() -> None:
    with pytest.raises(CalibrationError, match="older Farthing; calibrate again with this version"):
        Certificate.from_json(json.loads(OLD))


def test_groups_need_a_group() -> None:
    with pytest.raises(CalibrationError, match="no groups to calibrate"):
        groups.certify(Grouped(np.array([]), np.array([], int), ()), "0.1", fingerprint=MARK)


@pytest.mark.slow
@example(Fraction(5, 2**40))  # a decimal of more digits than the decimal module keeps
@given(st.fractions(min_value=0, max_value=1).filter(lambda f: 0 < f < 1))
@settings(deadline=None)
def test_levels_are_kept_exactly(level: Fraction) -> None:
    assert exact_level(exact_text(level)) == level


@given(st.floats(1e-9, 1, exclude_max=True))
@settings(deadline=None)
def test_a_float_is_the_decimal_that_it_prints_as(level: float) -> None:
    assert exact_level(level) == Fraction(repr(level))


def test_who_said_what_is_right_is_no_matter_of_the_evidence() -> None:
    said = (*SPLIT.conditional_on, wording.judged("mini", "large"))
    assert structs.replace(SPLIT, conditional_on=said).verify(SCORES) == []


def first_rule(made: Certificate) -> Certificate:
    """The certificate as a version wrote it that named no rule."""
    body = made.to_json()
    promise = {name: value for name, value in body["promise"].items() if name != "rule"}
    return Certificate.from_json(body | {"promise": promise})


def with_rule(made: Certificate, rule: int) -> Certificate:
    promise: Any = made.promise
    return structs.replace(made, promise=structs.replace(promise, rule=rule))


def of_losses(lost: int, won: int, n: int) -> Paired:
    """One operating point that loses and wins so many questions."""
    reference = np.arange(n) >= won
    correct = np.arange(n) < n - lost
    return Paired(np.full((n, 1), 9), correct[:, None], reference)


@pytest.mark.parametrize(
    "made", [PARITY, BUDGET, SELECTIVE, WEIGHTED], ids=lambda m: m.promise.kind()
)
def test_a_certificate_names_its_rule_and_an_older_one_stays_as_it_is(made: Certificate) -> None:
    assert made.to_json()["promise"]["rule"] == 2
    old = first_rule(made)
    assert "rule" not in old.to_json()["promise"]
    assert first_rule(old) == old != made
    evidence = {"parity": PAIRED, "budget": SPENDING, "selective": ANSWERS, "weighted": MIX}
    assert old.verify(evidence[made.promise.kind()]) == []
    assert old.refuted == made.refuted == ""


def test_a_budget_that_an_older_version_proved_at_worst_is_named() -> None:
    asked = AskedOf(models=("large",), questions=9, recorded=9, missing="worst")
    made = structs.replace(BUDGET, asked_of=asked)
    assert made.refuted == ""
    assert "cost no more than the most that was paid" in with_rule(made, 1).refuted
    chance = structs.replace(asked, missing="chance")
    assert with_rule(structs.replace(made, asked_of=chance), 1).refuted == ""


def test_an_older_certificate_is_checked_by_its_own_rule() -> None:
    """Parity at .09 on 20 questions: the first p-value was .0858, that of one loss less .0917."""
    paired = of_losses(3, 7, 20)
    now = parity.certify(paired, "0.05", "0.09", fingerprint=MARK)
    by_first = replace(paired, rule=1)
    then = first_rule(parity.certify(by_first, "0.05", "0.09", fingerprint=MARK))
    assert (now.promises, then.promises) == (False, True)
    assert then.verify(paired) == []
    claimed = with_rule(then, 2)
    assert "point is 0 in the certificate but None by this evidence" in claimed.verify(paired)


def test_a_rule_that_this_version_does_not_know_is_named() -> None:
    newer = with_rule(PARITY, 3)
    assert newer.verify(PAIRED) == ["rule is 3 in the certificate but 2 by this evidence"]


@pytest.mark.parametrize("made", [ONLINE, WEIGHTED])
def test_a_kind_of_the_laboratory_says_which_package_reads_it(
    made: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = made.to_json()
    assert Certificate.from_json(body) == made
    core = (one for one in entry_points(group=certificate.GROUP) if ".kinds.split" in one.value)
    found = EntryPoints(core)
    monkeypatch.setattr(certificate, "entry_points", lambda **_: found)
    with pytest.raises(
        MissingPackageError, match=r"'(online|weighted)' needs farthing-lab;.*pip install"
    ):
        Certificate.from_json(body)
    with pytest.raises(MissingPackageError, match="farthing-lab"):
        Coverage("0.9", online=True).evidence(SCORES, Facts())
