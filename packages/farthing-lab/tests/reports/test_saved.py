"""Saved against lost: what is drawn of a recommendation and of a comparison."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from made_up_pool import pool, ungraded

from farthing.methods.base import Dataset
from farthing.methods.cards import card
from farthing.promises.base import Promise
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.parity import Parity
from farthing.recommendation import candidates
from farthing.recommendation.base import Alone, Comparison
from farthing.recommendation.losses import LossTable, at_losses
from farthing.recommendation.recommend import recommend
from farthing.recommendation.record import Recommendation
from farthing.reports import losses, recommendation_page, saved, saved_figure
from farthing.traces.arrays import TraceArrays
from farthing_lab.reports import page

ALPHA = Fraction(1, 10)
QUICK = ("evidence-cascade", "pool-gain")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two methods take part, so that it takes a moment."""
    monkeypatch.setattr(candidates, "cards", lambda: [card(name) for name in QUICK])


def recommended(
    asked: Promise, traces: TraceArrays | None = None, holdout: int = 0
) -> Recommendation:
    traces = pool(700) if traces is None else traces
    return recommend(Dataset("made up", traces), asked, reference="large", holdout=holdout)


@pytest.mark.slow
@pytest.mark.parametrize("asked", [Parity("large", "0.05"), Agreement("large", "0.1")])
def test_every_point_that_was_tested_is_drawn_where_it_was_proved(asked: Promise) -> None:
    found = recommended(asked, pool(700) if asked.needs_gold else ungraded(pool(700)))
    value = found.found.value
    (chosen,) = (point for point in found.tradeoffs if point.chosen)
    assert chosen.method == found.name
    assert chosen.proved
    assert value.gained is not None
    assert chosen.saved == pytest.approx(value.saved)
    assert chosen.lost == pytest.approx(-value.gained)
    methods = list(dict.fromkeys(point.method for point in found.tradeoffs))
    assert len(methods) == 2
    for method in methods:
        proved = [point.proved for point in found.tradeoffs if point.method == method]
        assert proved == sorted(proved), "testing goes from the most expensive point down"
    assert not all(point.proved for point in found.tradeoffs)
    mine = [point for point in found.tradeoffs if point.method == found.name and point.proved]
    assert chosen.saved == max(point.saved for point in mine)
    assert found.to_json()["tested"][0]["method"] == methods[0]

    drawn = saved.of_recommendation(found)
    assert drawn is not None
    assert (drawn.reference, drawn.measure) == ("large", found.measure)
    assert drawn.allowed == pytest.approx(float(asked.margin))
    (star,) = (mark for mark in drawn.marks if mark.chosen)
    assert star.within == (chosen.lost, drawn.allowed)
    small = found.models["small"]
    assert small is not None
    (model,) = (mark for mark in drawn.marks if mark.name == "small")
    assert model.saved == pytest.approx(1 - 0.1 / 2)
    assert model.alone
    assert model.lost == pytest.approx(found.models["large"].accuracy - small.accuracy)  # type: ignore[union-attr]
    assert sum(len(sweep.points) for sweep in drawn.sweeps) == len(found.tradeoffs)
    assert "proved to stay left of the red line" in drawn.sentence()
    assert drawn.allowed is not None
    (axes,) = saved_figure.figure(drawn).axes
    left, right = axes.get_xlim()
    assert left < 0 < 100 * star.lost < 100 * drawn.allowed < right


@pytest.mark.slow
def test_questions_that_only_measure_are_told_from_those_that_proved() -> None:
    found = recommended(Parity("large", "0.05"), holdout=100)
    drawn = saved.of_recommendation(found)
    assert drawn is not None
    assert "models alone of those held out" in drawn.sentence()
    (chosen,) = (point for point in found.tradeoffs if point.chosen)
    assert chosen.saved != found.found.value.saved, "the bundle is measured on others"


@pytest.mark.slow
def test_where_nothing_is_proved_no_point_is_chosen() -> None:
    found = recommended(Agreement("large", "0.001"))
    assert found.nothing_cheaper
    assert not any(point.chosen for point in found.tradeoffs)
    drawn = saved.of_recommendation(found)
    assert drawn is not None
    assert not any(mark.chosen for mark in drawn.marks)
    assert saved_figure.svg(saved_figure.figure(drawn), "nothing")


@pytest.mark.slow
def test_points_are_left_out_where_chance_drew_questions_unequally() -> None:
    traces = pool(1_400)
    chances = np.where(np.arange(1_400) % 2, 0.5, 1.0)[:, None, None]
    unequal = np.broadcast_to(chances, traces.made.shape).astype(np.float32)
    found = recommended(Parity("large", "0.05"), replace(traces, asked_probability=unequal), 100)
    assert found.certificate is not None
    assert found.certificate.promises
    assert found.tradeoffs == ()
    drawn = saved.of_recommendation(found)
    assert drawn is not None
    assert [mark.chosen for mark in drawn.marks].count(True) == 1


def test_a_comparison_beside_its_reference(proved: Comparison) -> None:
    drawn = page.of_comparison(proved, ALPHA)
    assert drawn is not None
    assert (drawn.reference, drawn.measure, drawn.allowed) == ("guide", "accuracy", 0.02)
    marks = {mark.name: mark for mark in drawn.marks}
    assert set(marks) == {"cheap", "broken"}, "what proved nothing stands at the origin"
    assert marks["cheap"].chosen
    assert marks["cheap"].lost == pytest.approx(0.01)
    assert marks["cheap"].saved == pytest.approx(1 - 3 / 9)
    assert marks["cheap"].within == pytest.approx((-0.01, 0.02))
    assert marks["broken"].within is None
    (line,) = {sweep.points for sweep in drawn.sweeps}
    assert np.allclose(line, [(0.2, 1 - 1 / 9), (0.0, 0.0)])
    assert "95 % interval" in drawn.sentence()


def test_agreement_is_lost_from_all_answers_its_own(proved: Comparison) -> None:
    row = proved.rows[0]
    same = replace(row, per_split={**row.per_split, "realised": [0.97] * 20})
    asked = Agreement("guide", Fraction(1, 20))
    drawn = page.of_comparison(replace(proved, promise=asked, rows=[same]), ALPHA)
    assert drawn is not None
    assert (drawn.measure, drawn.allowed) == ("agreement", 0.05)
    assert drawn.marks[0].lost == pytest.approx(0.03)


def test_a_model_that_loses_far_more_stands_at_the_edge_with_its_loss() -> None:
    marks = (
        saved.Mark("a", "a", 0.6, 0.01, chosen=True),
        saved.Mark("small", "small", 0.9, 0.45, alone=True),
        saved.Mark("tiny $x$", "tiny $x$", 0.91, 0.5, alone=True),
    )
    (axes,) = saved_figure.figure(saved.SavedAgainstLost("large", "accuracy", 0.02, marks)).axes
    written = {text.get_text(): text.get_position() for text in axes.texts}
    assert axes.get_xlim()[1] < 10
    names = {text.xy[1] for text in axes.texts if "loses" in text.get_text()}  # type: ignore[attr-defined]
    assert {"small loses 45", "tiny $x$ loses 50"} <= set(written)
    assert max(names) - min(names) >= saved_figure.LINE, "no name covers another"


def test_without_a_reference_nothing_is_drawn(comparison: Comparison) -> None:
    assert page.of_comparison(comparison, ALPHA) is None
    free = replace(comparison, today=Alone("guide", 0.0, 0.9), reference="guide")
    assert page.of_comparison(free, ALPHA) is None


@pytest.mark.slow
def test_what_is_proved_at_several_losses_is_drawn_as_stairs() -> None:
    asked = Agreement("large", "0.1", "0.2")
    levels = [Fraction(1, 1000), Fraction(1, 20)]
    dataset = Dataset("made up", ungraded(pool(1_000)))
    table = at_losses(dataset, asked, levels, look=(1, Fraction(1), Fraction(1, 4)))
    drawn = saved.of_recommendation(table.at(Fraction(1, 10)).found, table)
    assert drawn is not None
    proved = [line for line in table.lines if table.at(line.loss).proved]
    assert 0 < len(proved) < len(table.lines)
    assert drawn.stairs == tuple((float(n.loss), table.at(n.loss).saved) for n in proved)
    assert "black stairs" in drawn.sentence()
    (axes,) = saved_figure.figure(drawn).axes
    assert "proved together" in axes.get_legend_handles_labels()[1]
    page = recommendation_page.html(table.lines[-1].found, "log", table)
    assert "What is saved, by what may be lost" in page
    assert "nothing proved" in page


@pytest.mark.slow
def test_what_more_questions_would_prove_is_about_the_next_proof() -> None:
    asked = Agreement("large", "0.02", "0.2")
    dataset = Dataset("made up", ungraded(pool(700)))

    def said(following: Fraction) -> str:
        table = at_losses(dataset, asked, [], look=(1, Fraction(1, 100), following))
        line = next(line for line in table.lines if not line.proved)
        assert f"in another proof, which spends less of delta: {line.found.outlook}" in " ".join(
            losses.sentences(table)
        )
        return line.found.outlook

    needed = [int(said(Fraction(1, part)).split()[1].replace(",", "")) for part in (100, 400)]
    assert needed == sorted(set(needed)), "the next proof has less of delta, and needs more"


@pytest.mark.slow
def test_all_lines_share_what_this_proof_spends() -> None:
    asked, dataset = Agreement("large", "0.1", "0.2"), Dataset("made up", ungraded(pool(400)))
    levels = [Fraction(1, 20), Fraction(1, 10), Fraction(1, 5)]
    table = at_losses(dataset, asked, levels, look=(2, Fraction(1, 4), Fraction(1, 9)))
    certificates = [line.found.bundle.certificate for line in table.lines]
    found = [getattr(one.promise, "delta", None) for one in certificates if one is not None]
    assert found == [Fraction(1, 5) / 4 / 3] * 3
    assert (table.delta, table.look) == (Fraction(1, 20), 2)
    best = table.at(Fraction(1, 5))
    assert best.saved == max(line.saved for line in table.lines)


def test_a_line_that_saves_more_at_less_loss_is_the_better_one() -> None:
    lines: Any = (SimpleNamespace(loss=0.01, saved=0.3), SimpleNamespace(loss=0.05, saved=0.1))
    table = LossTable(lines, Fraction(1, 10), 1)
    assert table.at(Fraction(1, 10)) is lines[0]
