from dataclasses import replace
from fractions import Fraction

from farthing.recommendation.base import OPTIMUM, Comparison
from farthing_lab.comparison.names import SOLVABLE_ONLY
from farthing_lab.reports import summary

ALPHA = Fraction(1, 10)


def test_the_cheapest_promise_is_held_against_the_next(comparison: Comparison) -> None:
    found = summary.finding(comparison, ALPHA)
    assert found
    cheapest, other = found
    assert other
    assert (cheapest.policy, other.policy) == ("stopping", "ccpo")
    # recorded as ccpo less stopping: +2e-5 [1.2e-5, 2.8e-5]; turned round here
    difference = summary.cost_difference(comparison, cheapest, other)
    assert difference
    assert (difference.mean, difference.low, difference.high) == (
        -2e-5,
        -2.8e-5,
        -1.2e-5,
    )


def test_the_sentence_gives_the_saving_and_its_interval(comparison: Comparison) -> None:
    text = summary.sentence(comparison, ALPHA)
    assert "Supervised stopping is the cheapest policy with a promise" in text
    assert "95 % interval $0.0120 to $0.0280" in text
    assert "no saving" not in text
    assert "on fresh questions it pays 1.07 times what the known optimum pays" in text


def test_an_interval_around_zero_is_called_so(comparison: Comparison) -> None:
    wide = replace(comparison.differences[0], low=-1e-5)
    text = summary.sentence(replace(comparison, differences=[wide]), ALPHA)
    assert "so there may be no saving" in text


def changed(comparison: Comparison, **fields: object) -> Comparison:
    """Change the rows with an exact promise."""
    rows = [
        replace(row, **fields) if row.calibration == "split" else row  # type: ignore[arg-type]
        for row in comparison.rows
    ]
    return replace(comparison, rows=rows)


def test_who_must_return_everything_is_not_the_cheapest(comparison: Comparison) -> None:
    all_of_it = replace(changed(comparison, kappa=[0.0] * 40), sizes={"calibrate": 8})
    assert summary.finding(all_of_it, ALPHA) is None
    text = summary.sentence(all_of_it, ALPHA)
    assert "the 8 calibration questions are too few" in text
    assert "It takes 9 questions or more" in text  # floor(0.1 (9 + 1)) = 1
    assert "cheapest" not in text


def test_several_that_cost_the_same_have_no_winner(comparison: Comparison) -> None:
    alike = dict(comparison.rows[-1].per_split)
    tied = changed(comparison, per_split=alike)
    assert summary.finding(tied, ALPHA) is None
    text = summary.sentence(tied, ALPHA)
    assert "no policy with a promise is the cheapest" in text
    assert "UALA" in text
    assert "CCPO as published" in text


def test_what_was_reached_is_held_against_what_was_promised(comparison: Comparison) -> None:
    def said(*coverage: float, splits: int = 40) -> str:
        figures = {"cost_usd": [1.0] * len(coverage), "coverage": list(coverage)}
        return summary.reached(
            replace(changed(comparison, per_split=figures), splits=splits), ALPHA
        )

    assert said(0.92, 0.9) == (
        "Policies with an exact promise came to 0.910 on average; 0.9 is promised."
    )
    assert "within the noise of 40 divisions" in said(0.85, 0.94)
    assert "more is missing than the noise" in said(0.85, 0.851)
    assert "a single division says little" in said(0.882, splits=1)


def test_the_row_of_the_optimum_is_explained(comparison: Comparison) -> None:
    assert summary.optimum_played(comparison) == ""
    played = replace(comparison.rows[-1], policy=OPTIMUM, label="Optimum (known)")
    text = summary.optimum_played(replace(comparison, rows=[played]))
    assert "in expectation" in text
    assert "on the 400 questions here" in text
    assert "a lot decides" in text
    assert "luck" not in text


def test_without_a_promise_nothing_is_claimed(comparison: Comparison) -> None:
    rows = [row for row in comparison.rows if row.calibration != "split"]
    assert "no policy with an exact promise" in summary.sentence(
        replace(comparison, rows=rows), ALPHA
    )


def test_doubts_depend_on_what_was_done(comparison: Comparison) -> None:
    one = " ".join(summary.doubts(comparison))
    many = " ".join(summary.doubts(replace(comparison, seeds=[0, 1, 2])))
    assert "One training seed" in one
    assert "One training seed" not in many
    assert "generator" in one
    assert "splits share questions" in many
    assert "made by hand" in many


def test_a_promise_is_explained_in_plain_words(comparison: Comparison) -> None:
    text, last = summary.sentences(comparison)
    assert last.startswith("A comparison's winner carries no certificate")
    assert text.startswith(summary.sentence(comparison, ALPHA))
    assert "An exact promise means: At least 90 of 100 new questions" in text
    assert "or had none to find" in text
    of_solvable = replace(comparison, notes=[*comparison.notes, SOLVABLE_ONLY])
    assert "that can be solved" in summary.in_plain_words(of_solvable, ALPHA)
    nobody = replace(comparison, rows=[r for r in comparison.rows if r.calibration != "split"])
    assert summary.in_plain_words(nobody, ALPHA) == ""
