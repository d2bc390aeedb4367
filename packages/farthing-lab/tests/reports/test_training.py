from fractions import Fraction

import numpy as np
import pytest

from farthing.recommendation.base import Comparison, Row
from farthing_lab.reports.training import running_mean, training

ALPHA = Fraction(1, 10)


def test_training_panels_are_those_with_curves(comparison: Comparison) -> None:
    figure = training(comparison.rows, ALPHA)
    assert figure
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.axison]
    assert len(titles) == 5
    shown = [axes.get_xlabel() for axes in figure.axes if axes.axison]
    assert shown == ["", "", "", "Update", "Update"]
    assert training([], ALPHA) is None


def test_policies_that_share_a_training_share_its_line() -> None:
    curves = {"cost": [1.0, 2.0], "kappa": [0.2, 0.1]}
    other = {"cost": [3.0, 2.0]}
    trained = {"cpo": curves, "ccpo": other, "cpo-batch": dict(curves)}
    labels = {"cpo": "CPO", "ccpo": "CCPO", "cpo-batch": "CPO batch"}
    rows = [Row(name, labels[name], ALPHA, "split", curves=of) for name, of in trained.items()]
    figure = training(rows, ALPHA)
    assert figure
    cost = figure.axes[0]
    assert [line.get_label() for line in cost.lines] == ["CPO, CPO batch", "CCPO"]
    assert list(np.asarray(cost.lines[1].get_ydata())) == [3.0, 2.0]


def test_running_mean_against_a_loop() -> None:
    values = np.random.default_rng(0).random(300)
    updates, means = running_mean(values)
    for update, mean in zip(updates.astype(int), means, strict=True):
        assert mean == pytest.approx(values[update - 15 : update].mean())
