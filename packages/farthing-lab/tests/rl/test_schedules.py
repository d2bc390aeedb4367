"""Learning-rate schedules against their formulas, and where they meet."""

from math import cos, pi

import numpy as np
import pytest

from farthing_lab.rl.schedules import SCHEDULES, ScheduleName, cosine, linear, rex, uba

SHARES = np.linspace(0, 1, 101)


@pytest.mark.parametrize("phi", [0.25, 0.5, 1.0, 5.0])
def test_uba_is_its_formula(phi: float) -> None:
    for z in SHARES:
        numerator = 2 + 2 * cos(pi * z)
        denominator = 2 * phi + 2 - phi + (2 - phi) * cos(pi * z)
        assert uba(z, phi) == pytest.approx(numerator / denominator, abs=1e-14)


def test_uba_of_two_is_the_cosine() -> None:
    assert [uba(z, 2.0) for z in SHARES] == pytest.approx([cosine(z) for z in SHARES])


def test_uba_of_one_is_rex_of_the_cosine() -> None:
    assert [uba(z, 1.0) for z in SHARES] == pytest.approx([rex(1 - cosine(z)) for z in SHARES])


def test_the_smaller_phi_the_longer_it_stays_high() -> None:
    rates = np.array([[uba(z, phi) for z in SHARES] for phi in (0.25, 0.5, 1.0, 2.0, 5.0)])
    assert (np.diff(rates[:, 1:-1], axis=0) < 0).all()
    assert min(uba(z, 1e-9) for z in SHARES[:-1]) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("name", sorted(SCHEDULES.keys() - {"constant"}))
def test_every_schedule_falls_from_one_to_nothing(name: ScheduleName) -> None:
    rates = [SCHEDULES[name](z) for z in SHARES]
    assert [rates[0], rates[-1]] == pytest.approx([1.0, 0.0], abs=1e-15)
    assert (np.diff(rates) < 0).all()
    assert linear(0.25) == 0.75
    assert {SCHEDULES["constant"](z) for z in SHARES} == {1.0}


@pytest.mark.parametrize("arguments", [(-0.01,), (1.01,), (np.nan,), (0.5, 0.0), (0.5, -1.0)])
def test_what_is_no_share_is_refused(arguments: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]"):
        uba(*arguments)
