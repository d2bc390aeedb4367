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
        "rl/cpo_step.py",
        "(lam * c - r) / s",
        "(lam * c + r) / s",
        "rl/test_cpo_step.py::test_step_equals_the_exact_solution_on_thousands_of_problems",
    ),
    Mutation(
        "a miss raises the threshold, as equation 9 is printed",
        "calibration/guarantees/online.py",
        "(float(alpha) - error)",
        "(error - float(alpha))",
        "calibration/test_online.py::test_a_miss_lowers_kappa_and_a_hit_raises_it",
    ),
    Mutation(
        "the rank of the conformal quantile is one too high",
        "calibration/guarantees/split.py",
        "alpha.numerator * (n + 1) // alpha.denominator",
        "alpha.numerator * (n + 1) // alpha.denominator + 1",
        "calibration/test_split.py::test_it_is_the_kth_smallest_by_counting",
    ),
    Mutation(
        "importance weights are not truncated",
        "rl/vtrace.py",
        "np.minimum(clip, target / behaviour)",
        "target / behaviour",
        "rl/test_vtrace.py",
    ),
    Mutation(
        "cost advantages are not truncated",
        "rl/actor_critic.py",
        "np.minimum(1.0 / self.behaviour, CLIP / self.target)",
        "1.0 / self.behaviour",
        "rl/test_actor_critic.py::test_weights_are_truncated_for_cost_and_not_for_the_constraint",
    ),
    Mutation(
        "critics climb their loss, as equation 5 is printed",
        "rl/critics.py",
        "loss = 0.5 *",
        "loss = -0.5 *",
        "rl/test_actor_critic.py::test_critics_descend_to_their_targets_and_ignore_steps_not_taken",
    ),
    Mutation(
        "the worst right answer counts for coverage, not the best",
        "process/replay.py",
        "np.ascontiguousarray(right.T).max(axis=0)",
        "np.where(traces.correct, leaf, np.inf).min(axis=(1, 2))",
        "process/test_replay.py::test_kappa_star_over_every_action_subset",
    ),
    Mutation(
        "and the same in training",
        "rl/soft_set.py",
        "torch.where(correct, path, -torch.inf).amax(dim=(1, 2))",
        "torch.where(correct, path, torch.inf).amin(dim=(1, 2))",
        "rl/test_soft_set.py",
    ),
    Mutation(
        "only the set policy's divergence is bounded",
        "rl/trust_region.py",
        "zip(after.distributions, before.distributions, strict=True)",
        "zip(after.distributions[1:], before.distributions[1:], strict=True)",
        "rl/test_trust_region.py",
    ),
    Mutation(
        "what is tried again is not set aside from the question's budget",
        "models/retry.py",
        "await around(partial(self._model.complete, prompt))",
        "await (around if tries == 1 else alone)(partial(self._model.complete, prompt))",
        "runtime/test_answers.py",
    ),
    Mutation(
        "live, the reach of the round before decides whether to go on",
        "runtime/decision.py",
        "followed.reach[0, now] >= kappa",
        "followed.reach[0, now - 1] >= kappa",
        "runtime/test_answers.py",
    ),
    Mutation(
        "look-ahead follows gain and forgets what it costs",
        "methods/lookahead/policy.py",
        "np.where(can, gain / cost, -np.inf)",
        "np.where(can, gain, -np.inf)",
        "methods/test_lookahead.py::test_the_best_line_is_the_best_on_offer",
    ),
    Mutation(
        "look-ahead buys what is not on offer",
        "methods/lookahead/policy.py",
        "np.where(can, gain / cost, -np.inf)",
        "gain / cost",
        "methods/test_lookahead.py::test_the_best_line_is_the_best_on_offer",
    ),
    Mutation(
        "the first purchase is not always made",
        "methods/lookahead/policy.py",
        "    worth[:, 0] = np.inf\n",
        "",
        "methods/test_lookahead_lessons.py::test_the_first_purchase_is_made_at_every_threshold",
    ),
    Mutation(
        "the state is not brought up to date after a purchase",
        "methods/lookahead/policy.py",
        "bought[every[made], line[made, step]] += 1",
        "bought[every[made], line[made, step]] += step == 0",
        "methods/test_lookahead.py::test_critical_thresholds_against_enumeration",
    ),
    Mutation(
        "the score of going on leaves out what a covered question is worth",
        "methods/lookahead/policy.py",
        "order.worth[:, 1:] * self.price_nano",
        "order.worth[:, 1:]",
        "methods/test_lookahead.py::test_critical_thresholds_against_enumeration",
    ),
    Mutation(
        "a single decision takes its first purchase for a free choice",
        "methods/lookahead/decide.py",
        "if not step or best < 0:",
        "if best < 0:",
        "methods/test_decide.py::test_line_and_score_are_those_of_the_order",
    ),
    Mutation(
        "a forest goes left only below a threshold, not at it",
        "methods/forest.py",
        "asked[every, feature] > self.threshold[node]",
        "asked[every, feature] >= self.threshold[node]",
        "methods/test_lookahead.py::test_an_exported_forest_predicts_what_scikit_learn_does",
    ),
    Mutation(
        "and the same for one case",
        "methods/forest.py",
        "no if asked[feature] > threshold else yes",
        "no if asked[feature] >= threshold else yes",
        "methods/test_lookahead.py::test_an_exported_forest_predicts_what_scikit_learn_does",
    ),
    Mutation(
        "a purchase gains although a right answer was there already",
        "methods/lookahead/learner.py",
        "self._covered(after) & ~covered[can]",
        "self._covered(after)",
        "methods/test_lookahead_lessons.py::test_a_lesson_is_what_each_purchase_and_what_follows_it_gain_and_cost",
    ),
    Mutation(
        "a question is judged by estimates that have seen it",
        "methods/lookahead/learner.py",
        "self._fitted(self.fold[self.lesson.row] != k)",
        "self._fitted(self.fold[self.lesson.row] == k)",
        "methods/test_lookahead_lessons.py::test_no_question_is_judged_by_estimates_that_have_seen_its_grades",
    ),
    Mutation(
        "what would be bought later is free",
        "methods/lookahead/learner.py",
        "cost[can, line] += self._follow(after, judge, price)",
        "self._follow(after, judge, price)",
        "methods/test_lookahead_lessons.py::test_a_lesson_is_what_each_purchase_and_what_follows_it_gain_and_cost",
    ),
    Mutation(
        "look-ahead buys on when it is not worth its money",
        "methods/lookahead/learner.py",
        "going = worth * price >= 1",
        "going = worth * price < 1",
        "methods/test_lookahead_lessons.py::test_a_lesson_is_what_each_purchase_and_what_follows_it_gain_and_cost",
    ),
    Mutation(
        "a purchase is reached by its own worth, whatever came before it",
        "methods/lookahead/learner.py",
        "np.minimum.accumulate(order.worth, axis=1)",
        "order.worth",
        "methods/test_lookahead_learner.py::test_visits_step_by_step",
    ),
    Mutation(
        "the price of coverage is that of one question more",
        "methods/lookahead/learner.py",
        "np.sort(critical)[int(alpha * len(critical))]",
        "np.sort(critical)[int(alpha * len(critical)) - 1]",
        "methods/test_lookahead_learner.py::test_the_price_of_coverage_is_the_last_worth_that_must_be_bought",
    ),
    Mutation(
        "a missing call in a line does not end it",
        "process/action_space.py",
        "np.logical_and.accumulate(made, axis=2)",
        "made",
        "process/test_action_space.py",
    ),
    Mutation(
        "an order is laid out one item late",
        "process/action_space.py",
        "(lines.cumsum(axis=1) * lines).sum(axis=2) - 1",
        "(lines.cumsum(axis=1) * lines).sum(axis=2)",
        "process/test_action_space.py",
    ),
    Mutation(
        "the dearer an answer, the likelier it is returned",
        "methods/set_size_penalty/policy.py",
        "self.inner.price_nano / self.answer_nano",
        "self.answer_nano / self.inner.price_nano",
        "methods/test_set_size_penalty.py::test_the_dearer_an_answer_the_smaller_the_set",
    ),
    Mutation(
        "votes that are yet to come speak for an answer",
        "methods/set_size_penalty/policy.py",
        "(step[:, None] >= step) & given[:, None, :]",
        "(step[:, None] >= 0) & given[:, None, :]",
        "methods/test_set_size_penalty.py::test_evidence_does_not_depend_on_what_comes_later",
    ),
    Mutation(
        "settings are proved behind one that was not",
        "calibration/sequence.py",
        "np.logical_and.accumulate(np.asarray(p_values) <= delta)",
        "np.asarray(p_values) <= delta",
        "calibration/test_sequence.py",
    ),
    Mutation(
        "questions without an answer count as wrong ones",
        "calibration/guarantees/selective.py",
        "    wrong = (answers.answered & ~answers.correct).sum(axis=0)\n    p_values",
        "    wrong = (~answers.correct).sum(axis=0)\n    p_values",
        "calibration/test_selective.py::test_wrong_answers_are_counted_among_the_answers_and_nothing_else",
    ),
    Mutation(
        "wrong answers are counted among all questions, not among those answered",
        "calibration/guarantees/selective.py",
        "binomial_cdf(int(w), int(m), level)",
        "binomial_cdf(int(w), len(answers.correct), level)",
        "calibration/test_selective.py::test_wrong_answers_are_counted_among_the_answers_and_nothing_else",
    ),
    Mutation(
        "parity is tested from the cheapest setting up",
        "calibration/guarantees/parity.py",
        'proven(p_values[::-1], float(exact_level(delta, "delta")))[::-1]',
        'proven(p_values, float(exact_level(delta, "delta")))',
        "calibration/test_parity.py::test_testing_begins_at_the_dearest_and_takes_the_cheapest_proved",
    ),
    Mutation(
        "losses and wins against the reference change places",
        "calibration/guarantees/parity.py",
        "loss_p_value(int(minus), int(plus), n, margin)",
        "loss_p_value(int(plus), int(minus), n, margin)",
        "calibration/test_parity.py::test_the_p_values_count_losses_and_wins",
    ),
    Mutation(
        "the chance that the nuisance is outside its interval is left out",
        "calibration/trinomial.py",
        "best * (1 + _SLACK) + _OUTSIDE",
        "best * (1 + _SLACK)",
        "calibration/test_trinomial.py",
    ),
    Mutation(
        "a budget takes the setting that achieves least",
        "calibration/guarantees/budget.py",
        "np.argmax(achieved[found])",
        "np.argmin(achieved[found])",
        "calibration/test_budget.py::test_it_takes_what_achieves_most_among_what_fits",
    ),
    Mutation(
        "a budget is tested against the mean of these questions",
        "calibration/guarantees/budget.py",
        "mean_p_value(share, target, limit)",
        "float(share.mean() >= target)",
        "calibration/test_budget.py::test_a_setting_over_budget_is_as_rare_as_promised",
    ),
    Mutation(
        "the new question's own weight is left out",
        "calibration/guarantees/weighted.py",
        "level.numerator * (before[-1] + new) - level.denominator * new",
        "level.numerator * (before[-1] + new)",
        "calibration/test_weighted.py::test_it_covers_whom_the_weighted_p_value_covers",
    ),
    Mutation(
        "weights do not follow the questions into their order",
        "calibration/guarantees/weighted.py",
        "np.cumsum(sample.weights[order])",
        "np.cumsum(sample.weights)",
        "calibration/test_weighted.py::test_it_covers_whom_the_weighted_p_value_covers",
    ),
    Mutation(
        "a pool in pieces is ordered piece by piece",
        "traces/long_file.py",
        "cascade(recorded, self.order)",
        "cascade(recorded)",
        "experiments/test_evaluate_bundle.py::test_a_pool_is_one_cascade_whichever_model_is_cheap_in_a_piece",
    ),
    Mutation(
        "a piece of a file forgets where it begins",
        "traces/long_file.py",
        "chunk.take(index[first:last] - start)",
        "chunk.take(index[first:last] % len(chunk))",
        "experiments/test_evaluate_bundle.py::test_a_pool_is_one_cascade_whichever_model_is_cheap_in_a_piece",
    ),
    Mutation(
        "in a conversation, a right answer that was given counts among the wrong ones",
        "methods/lookahead/latent_difficulty.py",
        "wrong_before = self.before - found.reshape(right.shape)",
        "wrong_before = self.before",
        "methods/test_latent_difficulty.py::test_the_next_gain_is_that_of_the_enumerated_histories",
    ),
    Mutation(
        "a guide is expected to answer afresh, however stubborn it is",
        "methods/lookahead/latent_difficulty.py",
        "afresh = 1 - base - self.guide_persistence * (1 - base - joins)",
        "afresh = 1 - base",
        "methods/test_latent_difficulty.py::test_the_next_gain_is_that_of_the_enumerated_histories",
    ),
    Mutation(
        "an answer that was repeated counts as given afresh",
        "methods/lookahead/fit_latent_difficulty.py",
        "base_afresh = weight * (1 - base_kept)",
        "base_afresh = weight",
        "methods/test_fit_latent_difficulty.py::test_no_rate_nearby_is_likelier",
    ),
    Mutation(
        "a mixture takes the worse of two models",
        "methods/lookahead/estimates.py",
        "weight / (weight + (1 - share) * second)",
        "1 - weight / (weight + (1 - share) * second)",
        "methods/test_estimates.py",
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
