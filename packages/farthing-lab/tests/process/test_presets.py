"""The presets against the page that lays them beside the paper, by simulation."""

import csv
import sys
from importlib.util import module_from_spec, spec_from_file_location
from math import sqrt
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from farthing.errors import UnknownNameError
from farthing.process.replay import ReplayOutcome, outcome, paths, sample
from farthing.traces.arrays import TraceArrays
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import PRESETS, preset
from farthing_lab.methods.baselines.rounds import RandomPolicy
from farthing_lab.methods.baselines.uala import UalaPolicy

ROOT = Path(__file__).parents[4]
PUBLISHED = ROOT / "../shared/data/paper_tables.csv"
QUESTIONS = 200
N = 20_000


def table(second_column: str) -> list[list[str]]:
    """Read one of the page's two tables of the fit."""
    page = (ROOT / "docs/research/generator.md").read_text()
    lines = page.split(f"| preset | {second_column} |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def play(row: str, traces: TraceArrays) -> ReplayOutcome:
    """Simulate a row of the table question by question."""
    if row == "Random":
        scores = RandomPolicy().scores(traces)
        return sample(scores, traces, np.random.default_rng(1))
    scores = UalaPolicy().scores(traces)
    depth = int(row.rpartition(" ")[2])
    scores[:, :, -1] = np.arange(traces.horizon) < depth - 1
    return outcome(paths(scores, traces, empty="allow"), traces, kappa=1.0)


@pytest.mark.parametrize("name", PRESETS)
def test_the_page_shows_what_the_preset_does(name: str) -> None:
    traces = generate(PRESETS[name].config, N, np.random.default_rng(7))
    mine = [cells for cells in table("row") if cells[0] == name]
    assert {"Random", "CPO, round 1", "UALA, length 2"} <= {cells[1] for cells in mine}
    for _, row, _, coverage, _, cents in mine:
        if row.startswith("CPO"):
            continue  # the likelier answer of round 1 needs the probabilities
        ended = play(row, traces)
        spent = ended.cost_nano * QUESTIONS / 1e7
        error = sqrt(float(coverage) * (1 - float(coverage)) / N)
        assert ended.covered.mean() == pytest.approx(float(coverage), abs=4 * error + 0.0005)
        error = float(spent.std()) / sqrt(N)
        assert spent.mean() == pytest.approx(float(cents), abs=4 * error + 0.005)


@pytest.fixture(scope="module")
def fitting() -> ModuleType:
    spec = spec_from_file_location("fit_presets", ROOT / "benchmarks/fit_presets.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(ROOT / "benchmarks")  # what benchmarks share
        spec.loader.exec_module(module)
    return module


def test_the_page_is_exact(fitting: ModuleType) -> None:
    """Every digit, from the enumerated histories of the presets as they are shipped."""
    for name, chosen in PRESETS.items():
        coverage, cents = fitting.figure_of(chosen.config), fitting.cents_of(chosen.config)
        for _, row, _, shown, _, paid in (cells for cells in table("row") if cells[0] == name):
            assert (shown, paid) == (f"{coverage[row]:.3f}", f"{cents[row]:.2f}")
        for _, at, _, rounds in (cells for cells in table("coverage") if cells[0] == name):
            assert rounds == f"{fitting.optimal_rounds(chosen.config, float(at)):.2f}"


def test_the_fit_is_within_the_published_figures_own_error() -> None:
    for name, row, published, fitted, paid, cents in table("row"):
        p = float(published)
        assert float(fitted) == pytest.approx(p, abs=sqrt(p * (1 - p) / QUESTIONS)), (name, row)
        if float(paid) != 1.41:  # a dropped digit
            assert float(cents) == pytest.approx(float(paid), rel=0.12), (name, row)


def test_the_page_quotes_the_paper() -> None:
    if not PUBLISHED.exists():
        pytest.skip("the paper's tables are not part of the repository")
    with PUBLISHED.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for name, row, published, _, paid, _ in table("row"):
        policy, _, length = row.lower().partition(", ")
        agents = (PRESETS[name].dataset, PRESETS[name].base_model, policy)
        same = [r for r in rows if (r["dataset"], r["base_model"], r["policy"]) == agents]
        if policy == "cpo":
            same = [r for r in same if float(r["avg_len"]) <= 1.02]
        elif length:
            same = [r for r in same if float(r["avg_len"]) == float(length.split()[1])]
        assert same
        for column, figure in (("coverage", published), ("cost_cents", paid)):
            mean = np.mean([float(r[column]) for r in same])
            assert mean == pytest.approx(
                float(figure), abs=0.006 if column == "cost_cents" else 6e-4
            )


def test_presets_are_four_different_settings_with_the_sizes_of_the_paper() -> None:
    assert len({p.config for p in PRESETS.values()}) == 4
    for name, chosen in PRESETS.items():
        assert chosen.train == (1_000 if chosen.dataset == "hotpotqa" else 560)
        assert (chosen.calibrate, chosen.test, chosen.config.rounds) == (200, 200, 4)
        assert preset(name) is chosen
    with pytest.raises(UnknownNameError, match="did you mean 'mmlu-llama2-7b'"):
        preset("mmlu-llama2")
