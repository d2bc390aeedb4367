"""One decision of each cascade over a pool, worked out by hand from its formula."""

from fractions import Fraction

import numpy as np
import pytest
from small_pool import paid, small_pool, taught

from farthing.methods.cascades.agreement import AgreementCascadeLearner
from farthing.methods.cascades.conformal_arbitrage import (
    ArbitrageLearner,
)
from farthing_lab.methods.cascades.auto_mix import AutoMixLearner
from farthing_lab.methods.cascades.frugal_gpt import FrugalGptLearner
from farthing_lab.methods.cascades.model_thresholds import MicpLearner, TrustOrEscalateLearner
from farthing_lab.methods.cascades.ucci import UcciLearner
from farthing_lab.methods.routers.cascade_routing import CascadeRoutingLearner

RIGHT, WRONG = 0, 1


def test_ucci_escalates_below_the_pooled_shares_of_right_answers() -> None:
    """Model a is right on 1, 3, 2 and 4 of 4 questions where it says 0.5, 0.7, 0.8 and 0.9.

    Isotonic regression pools the two that fall: (3 + 2) / 8 = 0.625. So the thresholds are 0.25,
    0.625, 1 and beyond, and 0.7 and 0.8 are escalated together; model b costs 10 cents more.
    """
    sure = np.repeat([0.5, 0.7, 0.8, 0.9], 4)
    grades = [int(grade) for grade in "1000 1110 1100 1111".replace(" ", "")]
    train = small_pool(
        [[RIGHT if right else WRONG, RIGHT] for right in grades],
        [1, 10],
        [[one, 0.9] for one in sure],
    )
    policy = taught(UcciLearner(), train)
    assert policy.values.tolist() == [0.25, 0.625, 1.0, np.inf]
    points = policy.points(train)
    assert paid(points, 0) == [1.0] * 16
    assert paid(points, 1) == [11.0] * 4 + [1.0] * 12
    assert paid(points, 2) == [11.0] * 12 + [1.0] * 4
    assert paid(points, 3) == [11.0] * 16
    # Between 0.7 and 0.8 lies 0.75, at 0.625 as both; the text of a new question says no more.
    new = taught(UcciLearner(), train).points(small_pool([[WRONG, RIGHT]], [1, 10], [[0.75, 0.9]]))
    assert [paid(new, at)[0] for at in range(4)] == [1.0, 1.0, 11.0, 11.0]
    assert new.correct[0].tolist() == [False, False, True, True]


def test_ucci_asks_first_whom_its_pooled_shares_make_cheapest() -> None:
    """Parity with c within 0.02 of 50 questions: one answer may be lost.

    Model a is right on 8 of 9 where it says 0.2 and on 1 of 2 where it says 0.3: pooled, 9 / 11.
    Two would be lost, so all 11 are escalated: 50 + 11 x 10 = 160 cents. (By the score alone the 9
    would do, for 140.) Model b is wrong on the 10 where it says 0.2: 50 x 1.1 + 10 x 10 = 155.
    """
    a = [(WRONG, 0.2)] + [(RIGHT, 0.2)] * 8 + [(WRONG, 0.3), (RIGHT, 0.3)] + [(RIGHT, 0.9)] * 39
    b = [(RIGHT, 0.9)] * 40 + [(WRONG, 0.2)] * 10
    train = small_pool(
        [[one, two, RIGHT] for (one, _), (two, _) in zip(a, b, strict=True)],
        [1, 1.1, 10],
        [[one, two, 0.9] for (_, one), (_, two) in zip(a, b, strict=True)],
    )
    points = taught(UcciLearner(), train).points(train)
    assert paid(points, 0) == [1.1] * 50
    assert paid(points, 1) == [1.1] * 40 + [11.1] * 10


def test_conformal_arbitrage_asks_the_guardian_below_a_gap() -> None:
    """Of 59 questions the gap 2 p - 1 of question i is i / 58, so threshold k asks k of them again.

    Parity within 0.02 of 59 questions may lose one. Model a is right where its gap is 30 / 58 or
    more: 59 + 29 x 10 = 349 cents. Model b is from 10 / 58 on: 2 x 59 + 9 x 10 = 208 cents.
    """
    gap = np.arange(59) / 58
    answers = [[RIGHT if i >= 30 else WRONG, RIGHT if i >= 10 else WRONG, RIGHT] for i in range(59)]
    sure = [[(1 + one) / 2, (1 + one) / 2, 0.99] for one in gap]
    train = small_pool(answers, [1, 2, 10], sure)
    policy = taught(ArbitrageLearner(), train)
    np.testing.assert_allclose(policy.values[[0, 1, 29, 58]], gap[[0, 1, 29, 58]], atol=1e-6)
    new = small_pool([[RIGHT, WRONG, RIGHT]] * 2, [1, 2, 10], [[0.5, 0.70, 0.9], [0.5, 0.80, 0.9]])
    at = int(np.flatnonzero(policy.values > 0.5)[0])  # 30 / 58: the gaps are 0.4 and 0.6
    found = policy.points(new)
    assert paid(found, at) == [12.0, 2.0]
    assert found.correct[:, at].tolist() == [True, False]


@pytest.mark.parametrize(("lost", "first"), [(1, 1.0), (2, 1.2)])
def test_the_first_of_two_models_may_lose_a_fiftieth_of_the_answers(
    lost: int, first: float
) -> None:
    """1 of 59 is 0.017: a may keep its mistake, and alone costs 1 cent. 2 of 59 are 0.034: with 40
    escalated it would cost 1 + 40 x 10 / 59 = 7.8 cents, and b, which is always right, 1.2.
    """
    answers = [[WRONG if 40 <= i < 40 + lost else RIGHT, RIGHT, RIGHT] for i in range(59)]
    sure = [[(1 + i / 58) / 2] * 2 + [0.99] for i in range(59)]
    policy = taught(ArbitrageLearner(strong="c"), small_pool(answers, [1, 1.2, 10], sure))
    assert paid(policy.points(small_pool([[0, 0, 0]], [1, 1.2, 10], [[1.0] * 3])), 0) == [first]


def test_micp_gives_each_turn_its_share_of_the_errors() -> None:
    """19 questions and the next are 20. Weights of 1 and 2 split errors of 1/2 into 1/6 and 1/3.

    Turn a: floor(20 / 6) = 3 with the next one, so 2 of these. From the surest on a is right,
    wrong, right, wrong, right, and then wrong: before the third mistake 5 stop.
    Turn b: floor(20 / 3) = 6, so 5 of these. Of the 14 left, from the surest on, every other one is
    wrong: 7th, 9th, 11th, 13th and 15th of all, and the 17th would be one too many. 11 stop, and 3
    go on to c. That b is wrong on the first of all counts for nothing, since it was not asked.
    """
    by_a = [RIGHT, WRONG, RIGHT, WRONG, RIGHT] + [WRONG] * 14
    by_b = [WRONG] + [RIGHT] * 4 + [RIGHT, WRONG] * 7
    rising = np.linspace(0.95, 0.05, 19)
    train = small_pool(
        [[one, two, RIGHT] for one, two in zip(by_a, by_b, strict=True)],
        [1, 3, 10],
        [[one, one, 0.9] for one in rising],
    )
    policy = taught(MicpLearner(share=Fraction(2)), train)
    points = policy.points(train)
    assert policy.values[0] == 0.5
    assert paid(points, 0) == [1.0] * 5 + [4.0] * 11 + [14.0] * 3
    assert paid(points, 59) == [14.0] * 19  # no error is allowed, and nobody is trusted but c


def test_trust_or_escalate_goes_down_while_a_binomial_bound_holds() -> None:
    """At alpha = 0.6 and delta = 0.1, from the surest question down, a is right on the first 4.

    P(Bin(3, 0.6) <= 0) = 0.4^3 = 0.064 and P(Bin(4, 0.6) <= 0) = 0.026 hold; so does one error of 5
    (0.01024 + 0.0768 = 0.087) and of 6 (0.041), and two of 7: 0.0016 + 0.0172 + 0.0774 = 0.0963.
    Three of 8, 0.174, do not: 7 are trusted. Three of 10 would hold again and are not looked at.
    """
    by_a = [RIGHT] * 4 + [WRONG, RIGHT, WRONG, WRONG] + [RIGHT] * 2 + [WRONG] * 6
    sure = np.linspace(0.95, 0.2, 16)
    train = small_pool([[one, RIGHT] for one in by_a], [1, 10], [[one, 0.9] for one in sure])
    policy = taught(TrustOrEscalateLearner(), train)
    assert policy.values[0] == 0.6
    assert paid(policy.points(train), 0) == [1.0] * 7 + [11.0] * 9
    # An error after three right ones: P(Bin(4, 0.6) <= 1) = 0.0256 + 0.1536 = 0.179 ends it there.
    early = [RIGHT] * 3 + [WRONG] + [RIGHT] * 3 + [WRONG] * 9
    train = small_pool([[one, RIGHT] for one in early], [1, 10], [[one, 0.9] for one in sure])
    assert paid(taught(TrustOrEscalateLearner(), train).points(train), 0) == [1.0] * 3 + [11.0] * 13


def test_trust_or_escalate_tests_each_model_on_what_reaches_it() -> None:
    """a is trusted with the first 7 as above. b is wrong on those, and surest on 3 of them.

    They do not reach b. Of the 9 others it has but one wrong: P(Bin(9, 0.6) <= 1) = 0.0038.
    """
    by_a = [RIGHT] * 4 + [WRONG, RIGHT, WRONG, WRONG] + [RIGHT] * 2 + [WRONG] * 6
    by_b = [WRONG] * 7 + [RIGHT] * 8 + [WRONG]
    sure_a = np.linspace(0.95, 0.2, 16)
    sure_b = [0.9] * 3 + [0.1] * 4 + np.linspace(0.85, 0.5, 8).tolist() + [0.15]
    train = small_pool(
        [[one, two, RIGHT] for one, two in zip(by_a, by_b, strict=True)],
        [1, 3, 10],
        [[one, two, 0.9] for one, two in zip(sure_a, sure_b, strict=True)],
    )
    assert paid(taught(TrustOrEscalateLearner(), train).points(train), 0) == [1.0] * 7 + [4.0] * 9


def test_frugal_gpt_keeps_the_cascades_that_no_other_beats() -> None:
    """Model a says 0.2, 0.5 and 0.9 on 4 questions each, and is right on 0, 2 and 4 of them.

    a alone: 1 cent, 6 / 12. With b below 0.5: 1 + 10 x 4 / 12 = 4.33 cents, 10 / 12. With b below
    0.9: 1 + 10 x 8 / 12 = 7.67, 12 / 12. b alone costs 10 and is no better.
    """
    grades = [int(grade) for grade in "0000 1100 1111".replace(" ", "")]
    sure = np.repeat([0.2, 0.5, 0.9], 4)
    answers = [[RIGHT if right else WRONG, RIGHT] for right in grades]
    train = small_pool(answers, [1, 10], [[one, 0.9] for one in sure])
    policy = taught(FrugalGptLearner(), train)
    np.testing.assert_allclose(policy.values * 100, [1, 1 + 40 / 12, 1 + 80 / 12])
    points = policy.points(train)
    assert points.correct.sum(axis=0).tolist() == [6, 10, 12]
    assert paid(points, 1) == [11.0] * 4 + [1.0] * 8
    assert paid(points, 2) == [11.0] * 8 + [1.0] * 4


def test_frugal_gpt_believes_each_model_from_its_own_score_on() -> None:
    """a is sure, and right, on 8 of 12; of the 4 others b is sure of, and right on, 2; c on all.

    a, then b, then c cost (12 x 1 + 4 x 3 + 2 x 20) / 12 = 64 / 12 cents and are right on all. a,
    then c cost (12 + 4 x 20) / 12 = 92 / 12. b is right so seldom that its best score is below a's.
    """
    sure = [[0.9, 0.2, 0.9]] * 8 + [[0.2, 0.9, 0.9]] * 2 + [[0.2, 0.2, 0.9]] * 2
    answers = (
        [[RIGHT, WRONG, RIGHT]] * 8 + [[WRONG, RIGHT, RIGHT]] * 2 + [[WRONG, WRONG, RIGHT]] * 2
    )
    train = small_pool(answers, [1, 3, 20], sure)
    policy = taught(FrugalGptLearner(), train)
    points = policy.points(train)
    [at] = np.flatnonzero(points.correct.all(axis=0))
    assert policy.values[at] * 100 == pytest.approx(64 / 12)
    assert paid(points, int(at)) == [1.0] * 8 + [4.0] * 2 + [24.0] * 2
    # The thresholds are scores of training: who is a little less sure than 0.9 is not believed.
    new = small_pool([[WRONG, WRONG, RIGHT]] * 2, [1, 3, 20], [[0.88, 0.92, 0.9], [0.2, 0.88, 0.9]])
    assert paid(policy.points(new), int(at)) == [4.0, 24.0]


def test_auto_mix_goes_up_where_the_verifier_makes_it_worth_its_price() -> None:
    """In the bins 0 to 3 of the verifier a is right on 0, 1, 3 and 4 of 4, and b on all but one.

    P(bin | a wrong) = (4, 3, 1, 0) plus one each, / 12 = (5, 4, 2, 1) / 12, and of a right the
    reverse. b is right on 7 of the 8 questions that a has wrong, and on all others. In a bin b adds
    7/8 x P(a wrong | bin), P = (5, 4, 2, 1) / 6: 0.729, 0.583, 0.292, 0.146; its call costs 1.05
    cents. At 39.6 answers a dollar that is 0.416, and the bins 0 and 1 go up; at 58.9, 0.618, bin 0
    alone; at 71.8, 0.754, none. (Without the ones, 7/8, 0.656, 0.219 and 0: each bin later.)
    """
    grades = [int(grade) for grade in "0000 1000 1110 1111".replace(" ", "")]
    sure = np.repeat([0.2, 0.4, 0.6, 0.8], 4)
    answers = [[RIGHT if right else WRONG, RIGHT] for right in grades]
    answers[0][1] = WRONG
    train = small_pool(answers, [0.1, 1.05], [[one, 0.9] for one in sure])
    policy = taught(AutoMixLearner(), train)
    points = policy.points(train)
    for price, up in ((39.6, 8), (58.9, 4), (71.8, 0)):
        at = int(np.abs(policy.values - price).argmin())
        assert policy.values[at] == pytest.approx(price, abs=0.1)
        assert paid(points, at) == [1.15] * up + [0.1] * (16 - up)
    assert paid(points, len(policy.values) - 1) == [1.05] * 16  # where money is no object, b alone


def test_the_agreement_cascade_answers_where_two_agree_and_asks_the_strong_one_elsewhere() -> None:
    """a and b cost 1 and 2 cents and agree on 8 of 10 questions, on one of them both are wrong.

    The group costs 3 + 0.2 x 10 = 5 cents and loses 1 / 10; c alone costs 10 and loses nothing.
    """
    answers = [[0, 0, 0]] * 7 + [[1, 1, 0]] + [[0, 1, 0], [1, 2, 0]]
    train = small_pool(answers, [1, 2, 10])
    policy = taught(AgreementCascadeLearner(), train)
    np.testing.assert_allclose(policy.values, [0.05, 0.1])
    points = policy.points(train)
    assert paid(points, 0) == [3.0] * 8 + [13.0] * 2
    assert points.correct[:, 0].tolist() == [True] * 7 + [False, True, True]
    assert paid(points, 1) == [10.0] * 10


def test_cascade_routing_goes_on_where_the_score_that_it_saw_leaves_more_to_gain() -> None:
    """Model a is right on 2 of 10 where it is unsure, and on 10 of 10 where it is sure; b always.

    A Gaussian of grade and score expects mean + cov / var x (score - mean). Of two scores that is
    the line through 0.2 and 1; with a tenth of the variance on the diagonal beside it the slope is
    0.9 of that: 0.6 - 0.9 x 0.4 = 0.24, and 0.96. b would be worth 1 - price x 0.01 in either case:
    more than 0.24 below a price of 76, and more than 0.96 below 4. At 62.9 answers a dollar a is
    asked first, since 0.6 - 0.06 is more than 1 - 0.63, and b where a was unsure alone.
    """
    grades = [1, 1] + [0] * 8 + [1] * 10
    sure = [[0.3, 0.9]] * 10 + [[0.8, 0.9]] * 10
    train = small_pool([[RIGHT if right else WRONG, RIGHT] for right in grades], [0.1, 1], sure)
    policy = taught(CascadeRoutingLearner(), train)
    [at] = np.flatnonzero((policy.values > 60) & (policy.values < 70))
    points = policy.points(train)
    assert paid(points, int(at)) == [1.1] * 10 + [0.1] * 10
    assert points.correct[:, at].all()


def test_cascade_routing_asks_nobody_whose_score_is_known_already() -> None:
    """b is right just where a is, and as sure. Their scores' covariance is 0.9 of the variance V.

    Asking b would move its quality by C / sqrt(V) x 0.9 before a was asked, C being the covariance
    of grade and score; after it by C / sqrt(V) x 0.9 (1 - 0.9) / sqrt(1 - 0.81) = 0.21 C / sqrt(V).
    Of normal draws the positive part is 0.4 in the mean: C / sqrt(V) = 0.41 makes that 0.03 right
    answers and not 0.15. At 38.4 answers a dollar b's 0.2 cents are worth 0.08: it is not asked.
    """
    grades = [1, 1] + [0] * 8 + [1] * 10
    sure = [[0.3, 0.3]] * 10 + [[0.8, 0.8]] * 10
    train = small_pool([[RIGHT if right else WRONG] * 2 for right in grades], [0.1, 0.2], sure)
    policy = taught(CascadeRoutingLearner(), train)
    at = int(np.abs(policy.values - 38.4).argmin())
    assert paid(policy.points(train), at) == [0.1] * 20


def test_cascade_routing_hopes_for_more_than_the_mean() -> None:
    """b is right on 8 of 20, whatever a is: less than what a is expected to be where it is sure.

    But its score may show that it is right this time, and then its reply is given: where calls are
    worth nothing it is asked all the same.
    """
    grades = [[1, 0]] * 2 + [[0, 0]] * 3 + [[0, 1]] * 4 + [[0, 0]] + [[1, 0]] * 5 + [[1, 1]] * 4
    grades += [[1, 0]]
    sure = [[0.3, 0.3]] * 5 + [[0.3, 0.8]] * 5 + [[0.8, 0.3]] * 5 + [[0.8, 0.8]] * 5
    answers = [[RIGHT if right else WRONG for right in both] for both in grades]
    policy = taught(CascadeRoutingLearner(), small_pool(answers, [0.1, 0.2], sure))
    points = policy.points(small_pool(answers, [0.1, 0.2], sure))
    assert policy.values[-1] == 0.0
    assert paid(points, len(policy.values) - 1)[10:] == [0.3] * 10


def test_a_row_ends_in_the_model_that_is_named_and_asks_nobody_dearer() -> None:
    train = small_pool([[WRONG, WRONG, RIGHT]] + [[WRONG, RIGHT, RIGHT]] * 9, [1, 3, 10])
    policy = taught(MicpLearner(strong="b"), train)
    assert [paid(policy.points(train), at)[0] for at in (0, 59)] == [4.0, 4.0]
