"""A script that trains without asking whether it is the main one ends with one line, and soon."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
from fractions import Fraction
import numpy as np
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.comparison.compare import compare
from farthing_lab.comparison.plan import Plan
from farthing.methods.base import Dataset

questions = generate(preset("hotpotqa-llama2-7b").config, 3000, np.random.default_rng(0))
compare(Dataset("", questions), Plan((Fraction(1, 10),), ("ccpo", "cpo-batch"), 2, workers=2))
"""


@pytest.mark.slow
def test_a_script_without_a_main_guard_ends_with_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    command = [sys.executable, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 1
    *_, last = done.stderr.splitlines()
    assert last.startswith("farthing.errors.InputError: a training process ended before its time")
    assert 'if __name__ == "__main__":' in last
