import json
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from farthing.calibration.base import Certificate, exact_level, exact_text
from farthing.calibration.budget import Spending
from farthing.calibration.certificate import (
    Evidence,
    certify_budget,
    certify_groups,
    certify_nothing,
    certify_online,
    certify_pac,
    certify_parity,
    certify_selective,
    certify_split,
    certify_weighted,
    verify,
)
from farthing.calibration.online import OnlineThreshold
from farthing.calibration.parity import Paired
from farthing.calibration.plain_language import plainly
from farthing.calibration.selective import Answers, answers_above
from farthing.calibration.weighted import Weighted
from farthing.errors import CalibrationError

RNG = np.random.default_rng(0)
SCORES = RNG.random(200)
GROUP = np.repeat([0, 1, 2], [100, 95, 5])
NAMES = ("law", "art", "physics")
MARK = "0" * 64
SPLIT = certify_split(SCORES, 0.1, fingerprint=MARK)
PAC = certify_pac(SCORES, "0.1", "1/20", fingerprint=MARK, given="solvable")
GROUPS = certify_groups(SCORES, GROUP, NAMES, "0.1", fingerprint=MARK)
ONLINE = certify_online(OnlineThreshold(step=0.5, updates=20_000), "0.1", fingerprint=MARK)
NOTHING = certify_nothing(0.3, fingerprint=MARK)
INFINITE = certify_split(np.full(200, np.inf), "1/3", fingerprint=MARK)
FEW = certify_split(SCORES[:5], "0.1", fingerprint=MARK)
RIGHT = RNG.random((200, 3)) < [0.5, 0.97, 0.99]
COST = np.tile([1_000_000, 2_000_000, 9_000_000], (200, 1))
MIX = Weighted(SCORES, np.where(GROUP == 0, 2.0, 0.5), 2.0)
ANSWERS = answers_above(SCORES, SCORES > 0.3, np.array([0.5, 0.2, 0.1]))
PAIRED = Paired(COST, RIGHT, RIGHT[:, 2])
SPENDING = Spending(COST, RIGHT, 20_000_000)
RECORDS: dict[str, Evidence] = {
    "weighted": MIX,
    "selective": ANSWERS,
    "parity": PAIRED,
    "budget": SPENDING,
}
WEIGHTED = certify_weighted(MIX, "0.1", fingerprint=MARK)
SELECTIVE = certify_selective(ANSWERS, "0.1", "0.05", fingerprint=MARK)
PARITY = certify_parity(PAIRED, "0.06", "0.1", fingerprint=MARK)
BUDGET = certify_budget(SPENDING, 4_000_000, "0.1", fingerprint=MARK)
MENUS = [SELECTIVE, PARITY, BUDGET]
ALL = [SPLIT, PAC, GROUPS, ONLINE, NOTHING, INFINITE, FEW, WEIGHTED, *MENUS]


@pytest.mark.parametrize("certificate", ALL, ids=lambda c: c.guarantee)
def test_json_round_trip(certificate: Certificate) -> None:
    text = json.dumps(certificate.to_json(), allow_nan=False)
    assert Certificate.from_json(json.loads(text)) == certificate


def test_it_says_alpha_exactly_and_how_the_threshold_acts() -> None:
    assert (SPLIT.alpha, PAC.delta, INFINITE.alpha) == ("0.1", "0.05", "1/3")
    assert (SPLIT.k, SPLIT.n, SPLIT.fingerprint) == (20, 200, MARK)
    assert INFINITE.kappa == np.inf
    assert INFINITE.acts_as == 1.0
    assert any("min(kappa, 1)" in line for line in INFINITE.conditional_on)
    assert any("exchangeable" in line for line in SPLIT.conditional_on)
    assert len(SPLIT.invalid_when) >= 4


def test_the_interval_is_the_law_of_realised_coverage() -> None:
    """Of 2,000 calibrations on uniform scores 95 % realise a coverage inside it."""
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(2_000):
        made = certify_split(rng.random(200), "0.1", fingerprint=MARK)
        assert made.interval
        inside += made.interval[0] <= 1 - made.kappa <= made.interval[1]
    assert abs(inside / 2_000 - 0.95) < 4 * np.sqrt(0.05 * 0.95 / 2_000)


SENTENCES = {
    "marginal": (
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
    "per-group": (
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
            "A new question is covered with probability at least 0.9 under the target mix, if the "
            "weights are right, on average over draws of the 200 calibration questions (worth "
            "147): a right answer is in the returned set, or no model had one."
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
            "With confidence 0.9 in the draw of 200 questions, the accuracy of setting 2 of 3 is "
            "above the reference model's minus 0.06."
        ),
    ),
    "budget": (
        BUDGET,
        (
            "With confidence 0.9 in the draw of 200 questions, setting 2 of 3 costs less than "
            "$0.004 a question in expectation."
        ),
    ),
    "unproved answers": (
        certify_selective(Answers(~RIGHT, ~RIGHT), "0.001", "0.05", fingerprint=MARK),
        (
            "200 calibration questions do not prove at confidence 0.95 that answers of any setting "
            "are right with probability 0.999, so every question is left unanswered or escalated."
        ),
    ),
    "unproved parity": (
        certify_parity(Paired(COST, ~RIGHT, RIGHT[:, 2]), "0.02", "0.1", fingerprint=MARK),
        (
            "200 calibration questions do not prove at confidence 0.9 that any setting is "
            "within 0.02 of the reference model's accuracy, so the reference model answers, "
            "which is always valid."
        ),
    ),
    "unproved budget": (
        certify_budget(SPENDING, 1_000, "0.1", fingerprint=MARK),
        (
            "200 calibration questions do not prove at confidence 0.9 that any setting costs "
            "less than $1e-06 a question, so none is chosen."
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
        certify_online(OnlineThreshold(updates=10), "0.1", fingerprint=MARK),
        "10 updates are too few to promise anything about their stream.",
    ),
    "small groups": (
        certify_groups(SCORES[-5:], GROUP[-5:], NAMES, "0.1", fingerprint=MARK),
        (
            "5 calibration questions are too few to promise anything tighter than everything at "
            "alpha = 0.1, so every answer is returned."
        ),
    ),
}


PLAIN = {
    "marginal": (
        "At least 90 of 100 new questions of the same kind get a right answer among those "
        "returned, or had none to find, on average over what chance gives one to calibrate on."
    ),
    "pac": (
        "At least 90 of 100 new questions of the same kind that can be solved get a right answer "
        "among those returned, and you may be 95 % sure of that."
    ),
    "per-group": (
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
    assert plainly(SENTENCES[name][0]) == PLAIN[name]


@pytest.mark.parametrize("name", SENTENCES)
def test_one_plain_sentence_says_what_is_promised(name: str) -> None:
    certificate, sentence = SENTENCES[name]
    assert certificate.sentence() == sentence
    assert certificate.promises == (name == certificate.guarantee != "none")


def test_genuine_certificates_verify() -> None:
    for certificate in (SPLIT, PAC):
        assert verify(certificate, SCORES) == []
    assert verify(GROUPS, SCORES, GROUP, NAMES) == []
    assert verify(FEW, SCORES[:5]) == []


@pytest.mark.parametrize("certificate", [WEIGHTED, *MENUS], ids=lambda c: c.guarantee)
def test_records_verify_what_was_computed_from_them(certificate: Certificate) -> None:
    record = RECORDS[certificate.guarantee]
    assert verify(certificate, record) == []
    for other in MENUS:
        if other != certificate:
            assert "cannot be checked from" in verify(other, record)[0]
    assert "cannot be checked from scores alone" in verify(certificate, SCORES)[0]


@pytest.mark.parametrize("certificate", MENUS, ids=lambda c: c.guarantee)
@pytest.mark.parametrize("lie", [{"setting": None}, {"setting": 0}, {"settings": 4}, {"n": 201}])
def test_a_menu_s_certificate_that_lies_does_not_verify(
    certificate: Certificate, lie: dict[str, Any]
) -> None:
    false = msgspec.structs.replace(certificate, **lie)
    if false != certificate:
        assert verify(false, RECORDS[certificate.guarantee])


def test_weights_that_differ_do_not_verify() -> None:
    other = Weighted(SCORES, np.ones(200), 2.0)
    assert any("effective_n is" in line for line in verify(WEIGHTED, other))


def test_a_promise_about_a_menu_has_no_threshold_that_would_leave_answers_out() -> None:
    assert [made.acts_as for made in MENUS] == [0, 0, 0]
    assert [made.setting for made in MENUS] == [0, 1, 1]
    assert SELECTIVE.threshold == 0.5


@pytest.mark.parametrize("certificate", [SPLIT, PAC, GROUPS], ids=lambda c: c.guarantee)
@pytest.mark.parametrize(
    "lie", [{"kappa": 0.5}, {"k": 21}, {"n": 201}, {"alpha": "0.2"}, {"groups": {}}]
)
def test_a_certificate_that_lies_does_not_verify(
    certificate: Certificate, lie: dict[str, Any]
) -> None:
    false = msgspec.structs.replace(certificate, **lie)
    if false != certificate:
        assert verify(false, SCORES, GROUP, NAMES)


def test_other_scores_do_not_verify() -> None:
    assert any("kappa is" in line for line in verify(SPLIT, SCORES / 2))
    assert verify(GROUPS, SCORES, GROUP[::-1].copy(), NAMES)
    assert "cannot be checked" in verify(GROUPS, SCORES)[0]  # without the groups


@pytest.mark.parametrize("certificate", [ONLINE, NOTHING], ids=lambda c: c.guarantee)
def test_what_cannot_be_checked_says_so(certificate: Certificate) -> None:
    assert verify(certificate, SCORES) == [
        f"a certificate of kind '{certificate.guarantee}' cannot be checked from scores alone"
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kappa", "nan"),
        ("kappa", None),
        ("guarantee", "all"),
        ("given", 3),
        ("extra", 1),
        ("k", 0.5),
    ],
)
def test_what_is_no_certificate_is_refused(field: str, value: object) -> None:
    with pytest.raises(CalibrationError, match="not a certificate"):
        Certificate.from_json(SPLIT.to_json() | {field: value})
    with pytest.raises(CalibrationError, match="not a certificate"):
        Certificate.from_json([])


def test_groups_need_a_group() -> None:
    with pytest.raises(CalibrationError, match="no groups to calibrate"):
        certify_groups(np.array([]), np.array([], int), (), "0.1", fingerprint=MARK)


@example(Fraction(5, 2**40))  # a decimal of more digits than the decimal module keeps
@given(st.fractions(min_value=0, max_value=1).filter(lambda f: 0 < f < 1))
@settings(deadline=None)
def test_levels_are_kept_exactly(level: Fraction) -> None:
    assert exact_level(exact_text(level)) == level


@given(st.floats(1e-9, 1, exclude_max=True))
@settings(deadline=None)
def test_a_float_is_the_decimal_that_it_prints_as(level: float) -> None:
    assert exact_level(level) == Fraction(repr(level))
