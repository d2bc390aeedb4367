"""Break one line at a time, and see that the tests notice.

Each mutation undoes a correction or a rule that everything rests on. The sources are copied, one
text in them is replaced, and the named tests run against the copy: they pass before, fail after.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Mutation:
    """One wrong text, and the tests that must reveal it."""

    name: str
    file: str
    """Below `src/farthing`."""
    right: str
    """Occurs exactly once."""
    wrong: str
    tests: str
    """Below `tests`."""


MUTATIONS = (
    Mutation(
        "the sign in nu, as two widely copied implementations have it",
        "algorithms/cpo_step.py",
        "(lam * c - r) / s",
        "(lam * c + r) / s",
        "algorithms/test_cpo_step.py::test_step_equals_the_exact_solution_on_thousands_of_problems",
    ),
    Mutation(
        "a miss raises the threshold, as equation 9 is printed",
        "calibration/online.py",
        "(float(alpha) - error)",
        "(error - float(alpha))",
        "calibration/test_online.py::test_a_miss_lowers_kappa_and_a_hit_raises_it",
    ),
    Mutation(
        "the rank of the conformal quantile is one too high",
        "calibration/split.py",
        "alpha.numerator * (n + 1) // alpha.denominator",
        "alpha.numerator * (n + 1) // alpha.denominator + 1",
        "calibration/test_split.py::test_it_is_the_kth_smallest_by_counting",
    ),
    Mutation(
        "importance weights are not truncated",
        "algorithms/vtrace.py",
        "np.minimum(clip, target / behaviour)",
        "target / behaviour",
        "algorithms/test_vtrace.py",
    ),
    Mutation(
        "cost advantages are not truncated",
        "algorithms/actor_critic.py",
        "np.minimum(1.0 / self.behaviour, CLIP / self.target)",
        "1.0 / self.behaviour",
        "algorithms/test_actor_critic.py::test_weights_are_truncated_for_cost_and_not_for_the_constraint",
    ),
    Mutation(
        "critics climb their loss, as equation 5 is printed",
        "algorithms/critics.py",
        "loss = 0.5 *",
        "loss = -0.5 *",
        "algorithms/test_actor_critic.py::test_critics_descend_to_their_targets_and_ignore_steps_not_taken",
    ),
    Mutation(
        "the worst right answer counts for coverage, not the best",
        "environments/replay.py",
        "np.where(traces.correct, leaf, -np.inf).max(axis=(1, 2))",
        "np.where(traces.correct, leaf, np.inf).min(axis=(1, 2))",
        "environments/test_replay_bruteforce.py::test_kappa_star_over_every_action_subset",
    ),
    Mutation(
        "and the same in training",
        "algorithms/soft_set.py",
        "torch.where(correct, path, -torch.inf).amax(dim=(1, 2))",
        "torch.where(correct, path, torch.inf).amin(dim=(1, 2))",
        "algorithms/test_soft_set.py",
    ),
    Mutation(
        "only the set policy's divergence is bounded",
        "algorithms/trust_region.py",
        "zip(after.distributions, before.distributions, strict=True)",
        "zip(after.distributions[1:], before.distributions[1:], strict=True)",
        "algorithms/test_trust_region.py",
    ),
    Mutation(
        "what is tried again is not set aside from the question's budget",
        "orchestration/purse.py",
        "        bill.begin(partial(self._model.largest_cost_nano, prompt))\n",
        "",
        "orchestration/test_answers.py",
    ),
    Mutation(
        "live, the reach of the round before decides whether to go on",
        "orchestration/decision.py",
        "followed.reach[0, now] >= kappa",
        "followed.reach[0, now - 1] >= kappa",
        "orchestration/test_answers.py",
    ),
)


def run(tests: set[str], source: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-qx", "--noconftest", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [*command, *(f"tests/{name}" for name in sorted(tests))],
        cwd=ROOT,
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("mutations") / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    return source


@pytest.mark.slow
def test_the_tests_run_against_the_copy_and_pass(copy: Path) -> None:
    where = "import farthing; print(farthing.__file__)"
    imported = subprocess.check_output(
        [sys.executable, "-c", where], text=True, env={**os.environ, "PYTHONPATH": str(copy)}
    )
    assert Path(imported.strip()).is_relative_to(copy)
    done = run({mutation.tests for mutation in MUTATIONS}, copy)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_tests_fail_when_the_code_is_wrong(mutation: Mutation, copy: Path) -> None:
    path = copy / "farthing" / mutation.file
    text = path.read_text()
    found = text.count(mutation.right)
    assert found == 1, f"{mutation.file} has {mutation.right!r} {found} times; update the mutation"
    path.write_text(text.replace(mutation.right, mutation.wrong))
    try:
        done = run({mutation.tests}, copy)
    finally:
        path.write_text(text)
    assert done.returncode == 1, f"{mutation.tests} did not notice:\n{done.stdout[-2_000:]}"
    assert " failed" in done.stdout
