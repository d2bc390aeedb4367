#!/usr/bin/env bash
# Found with: statsmodels 0.15.0, Python 3.11.
#
# One would guess: two models that are right on the same questions and wrong on the same questions do not differ, so that
# McNemar's test says p = 1, or that it cannot tell.
#
# Seen: mcnemar(table, exact=False) says p = 0.0 with a statistic of inf; only a RuntimeWarning about a division hints at it.
# The continuity correction turns a difference of 0 into 1 before it is divided by the 0 questions on which the models differ.
# Without the correction p is nan, and with exact=True it is 1.
#
# Why it matters: a cheap model that never differs from the dear one is reported as different with all certainty. A loop over
# models, subjects or thresholds that keeps what has p < 0.05 keeps exactly these, and a correction for many tests (p times
# their number) does not remove a 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check statsmodels==0.15.0
"$folder/venv/bin/python" -W ignore::RuntimeWarning - <<'PYTHON'
import math

from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

same = [[90, 0], [0, 10]]  # both right, only the first, only the second, none
corrected = mcnemar(same, exact=False)
plain = mcnemar(same, exact=False, correction=False)
exact = mcnemar(same, exact=True)
print("continuity correction:", corrected.statistic, corrected.pvalue)
print("none:", plain.statistic, plain.pvalue)
print("exact:", exact.statistic, exact.pvalue)
kept = multipletests([corrected.pvalue] + 99 * [0.5], method="holm")[0]
print("kept by Holm among 100 tests:", kept.sum())
assert corrected.pvalue == 0 and math.isinf(corrected.statistic), "equal models do not differ now"
assert math.isnan(plain.pvalue) and exact.pvalue == 1, "the other forms say something else now"
assert kept.tolist() == [True] + 99 * [False], "Holm drops it now"
PYTHON
