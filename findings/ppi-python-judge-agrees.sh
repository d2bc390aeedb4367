#!/usr/bin/env bash
# Found with: ppi-python 0.2.3, numpy 2.4.6, Python 3.11.
#
# One would guess: a 95 % interval of prediction-powered inference holds the true accuracy in about 95 of 100 samples, and a
# better judge makes it narrower, not wrong.
#
# Seen: a model is right on 80 % of the questions. A judge is wrong about 2 % of all answers (it passes wrong ones). With 50
# answers labelled by hand and 5,000 by the judge, ppi_mean_ci(alpha=0.05) holds 0.80 in 65 % of the samples. In the other
# 35 % all of it lies above: no hand label contradicted the judge, so the estimate of its errors is 0 with a spread of 0, and
# what is left is the interval of 5,000 judged answers as if they were true. With 5 % of errors it is 88 %.
#
# Why it matters: the interval fails towards "better than it is", with the judges that one would trust most, and says nothing.
# 0 differences in 50 still allow for a judge that is wrong about 5 % of the answers (0.95 ** 50 is 0.077).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ppi-python==0.2.3 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from ppi_py import ppi_mean_ci

RIGHT, LABELLED, JUDGED, TIMES = 0.8, 50, 5_000, 2_000
random = np.random.default_rng(0)


def draw(count: int, wrong: float) -> tuple[np.ndarray, np.ndarray]:
    right = random.random(count) < RIGHT
    passed = right | (random.random(count) < wrong / (1 - RIGHT))
    return right.astype(float), passed.astype(float)


def shares(wrong: float) -> tuple[float, float]:
    held = above = 0
    for _ in range(TIMES):
        truth, judge = draw(LABELLED, wrong)
        low, high = ppi_mean_ci(truth, judge, draw(JUDGED, wrong)[1], alpha=0.05)
        held += bool(low[0] <= RIGHT <= high[0])
        above += bool(low[0] > RIGHT)
    return held / TIMES, above / TIMES


for wrong in (0.02, 0.05):
    held, above = shares(wrong)
    print(f"a judge wrong about {wrong:.0%}: the 95 % interval holds the truth in {held:.1%}, lies above it in {above:.1%}")
    assert held < (0.7 if wrong == 0.02 else 0.92), "the interval holds now"
    assert above > 0.05, "it does not lie above the truth now"
PYTHON
