"""Break one line at a time, and see that the tests notice.

Each mutation undoes a correction or a rule that everything rests on. The sources are copied, one
expression or statement in them is replaced, and the named tests run against the copy: they pass
before, fail after.

A place is a function, and what is wrong there is found in its syntax tree. Files may move and lines
be laid out anew; only who changes the expression itself has to come here.
"""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = tuple(ROOT.glob("packages/*/src"))
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Mutation:
    """One wrong piece of code, and the tests that must reveal it."""

    name: str
    place: str
    """Module, by the end of its name, and function or class in it: `online:update`."""
    right: str
    """An expression or a statement that occurs exactly once there."""
    wrong: str
    """What takes its place."""
    tests: str
    """File, by its last name, and one test in it if one is enough: `test_online::test_it`."""


MUTATIONS = (
    Mutation(
        "stopping a thought loses what the full thought loses too",
        "thinking.settled:lost_by_stopping",
        "right[:, -1:] & ~right[:, :-1]",
        "~right[:, :-1]",
        "test_stopping_thoughts::test_where_the_full_thought_is_wrong_too_stopping_loses_nothing",
    ),
    Mutation(
        "a thought is stopped one repeat late",
        "thinking.repeats:RepeatsPolicy.scores",
        "1.0 / (1.0 + unchanged(traces))",
        "1.0 / unchanged(traces)",
        "test_stopping_thoughts",
    ),
    Mutation(
        "an answer counts as unchanged from the beginning of its thought",
        "features.rounds:unchanged",
        "answer[:, t] == answer[:, t - 1]",
        "answer[:, t] == answer[:, t]",
        "test_stopping_thoughts::test_the_answer_that_stays_is_counted_from_where_it_came",
    ),
    Mutation(
        "who thinks straight to a cut pays for looking at those before",
        "traces.pool:side_by_side",
        "paid - stopping",
        "paid",
        "test_thoughts::test_straight_to_a_cut_nothing_is_paid_for_looking_at_those_before",
    ),
    Mutation(
        "who looks at each cut does not pay for looking",
        "traces.pool:in_turn",
        "cuts.cost_nano + cuts.stopping_nano",
        "cuts.cost_nano",
        "test_thoughts::test_straight_to_a_cut_nothing_is_paid_for_looking_at_those_before",
    ),
    Mutation(
        "a thought that was cut short is taken for a whole one",
        "traces.pool:rounds_in_turn",
        "np.minimum(made, calls.n_roles - 1)",
        "made",
        "test_thoughts",
    ),
    Mutation(
        "a thought that is passed on is paid from its beginning",
        "recommendation.escalation:EscalationModel.extra_nano",
        "self.cost_nano - spent",
        "self.cost_nano",
        "test_stopping_thoughts::test_a_thought_that_is_passed_on_costs_the_rest_of_it",
    ),
    Mutation(
        "a question's group is not seen live",
        "runtime.observation:Observer.observe",
        "() if self.group is None else (self.group,)",
        "()",
        "test_groups_live::test_the_group_decides_live_as_in_a_replay",
    ),
    Mutation(
        "a use of a tool is not charged to the agent's budget",
        "agents.react:ToolBudget.used",
        "{tool.name: 1, MONEY: cost_nano}",
        "{MONEY: cost_nano}",
        "test_tool_budget::test_after_every_event_used_and_left_are_what_the_tool_counted",
    ),
    Mutation(
        "a memory tier is paid for although the rest would not fit",
        "budget_mem.policy:BudgetMem._steps",
        "largest_nano(module, tier, memory, self.prices) + rest",
        "largest_nano(module, tier, memory, self.prices)",
        "test_budget_mem::test_a_batch_never_costs_more_and_leaves_nobody_out",
    ),
    Mutation(
        "bidding counts the present request among those to come",
        "bidding:Bidding.forgone",
        "_to_come(state, now)",
        "_to_come(state, now) + 1",
        "test_bidding::test_choices_bring_what_the_dynamic_programme_says",
    ),
    Mutation(
        "a grade counts the same however likely its model was to be asked",
        "off_policy:value_of",
        "least[hit] / log.propensity[hit]",
        "least[hit]",
        "test_bandits::test_without_the_weights_a_value_would_be_wrong",
    ),
    Mutation(
        "the guard lets every new regression pass",
        "squarecb:refitted",
        "not worse(candidate, learned.weight, fresh)",
        "True",
        "test_bandits::test_the_guard_holds_back_what_predicts_fresh_grades_worse",
    ),
    Mutation(
        "a planner may do what can cost more than is left",
        "planners.base:affordable",
        "a.largest_nano <= left.nano",
        "a.expected_nano <= left.nano",
        "planners/test_conformance::test_never_over_budget_and_nothing_is_worth_anything_late",
    ),
    Mutation(
        "a tree search draws nodes by what was spent",
        "bavt:chances",
        "1.0 / max(left_ratio, 1e-9)",
        "max(left_ratio, 1e-9)",
        "test_bavt::test_nodes_are_drawn_by_the_power_of_what_is_left",
    ),
    Mutation(
        "a comparison proves a promise on the questions that judge it",
        "comparison.proved:ProvedCandidate.play",
        "self.prove(calibrate)",
        "self.prove(test)",
        "test_proved::test_each_part_does_its_own_work",
    ),
    Mutation(
        "a comparison judges a promise on the questions that proved it",
        "comparison.proved:ProvedCandidate.play",
        "self.judge(self.prove(calibrate), test)",
        "self.judge(self.prove(calibrate), calibrate)",
        "test_proved::test_each_part_does_its_own_work",
    ),
    Mutation(
        "where nothing is proved nobody pays the reference",
        "comparison.proved:ProvedCandidate.judge",
        "theirs is None",
        "True",
        "test_proved::test_where_parity_is_not_proved_the_reference_answers_and_is_paid",
    ),
    Mutation(
        "the sign in nu, as two widely copied implementations have it",
        "trust_region:_binding_or_slack",
        "lam * c - r",
        "lam * c + r",
        "test_cpo_step::test_step_equals_the_exact_solution_on_thousands_of_problems",
    ),
    Mutation(
        "a miss raises the threshold, as equation 9 is printed",
        "online:update",
        "float(alpha) - error",
        "error - float(alpha)",
        "test_online::test_a_miss_lowers_kappa_and_a_hit_raises_it",
    ),
    Mutation(
        "the rank of the conformal quantile is one too high",
        "split:split_rank",
        "alpha.numerator * (n + 1) // alpha.denominator",
        "alpha.numerator * (n + 1) // alpha.denominator + 1",
        "test_split::test_it_is_the_kth_smallest_by_counting",
    ),
    Mutation(
        "importance weights are not truncated",
        "actor_critic:importance",
        "np.minimum(clip, target / behaviour)",
        "target / behaviour",
        "test_vtrace",
    ),
    Mutation(
        "the horizon shrinks as more is mastered",
        "rl.discount:discount",
        "alpha ** (1.0 / mastered)",
        "alpha**mastered",
        "test_discount",
    ),
    Mutation(
        "one step after those that are mastered is judged, too",
        "rl.discount:Horizon.after",
        "done[:, :k]",
        "done[:, 1 : k + 1]",
        "test_discount",
    ),
    Mutation(
        "what later rounds cost is discounted on the sampled path alone",
        "ccpo.learner:_SoftSetObjective._exact_cost",
        "self.batch.cost * weight",
        "self.batch.cost",
        "test_ccpo_wiring",
    ),
    Mutation(
        "a turn's discount stands where it begins",
        "ppo:turn_discounts",
        "mask & ~following",
        "mask & following",
        "test_masked_gae",
    ),
    Mutation(
        "an expert's reply ends what the controller's tokens before it are told",
        "ppo:masked_gae",
        "torch.where(ours, delta + later * lam * next_advantage, next_advantage)",
        "torch.where(ours, delta + later * lam * next_advantage, 0.0)",
        "test_masked_gae",
    ),
    Mutation(
        "the value at an expert's token is the next value of the controller's",
        "ppo:masked_gae",
        "torch.where(ours, values[:, t], next_value)",
        "values[:, t]",
        "test_masked_gae",
    ),
    Mutation(
        "the reward stands at the first of the controller's tokens",
        "ppo:place_reward",
        "mask.flip(1).cumsum(1).flip(1)",
        "mask.cumsum(1)",
        "test_masked_gae",
    ),
    Mutation(
        "masked tokens are multiplied by 0",
        "ppo:_only",
        "torch.where(mask, values, torch.zeros_like(values))",
        "values * mask",
        "test_ppo::test_the_gradient_of_a_masked_token_is_exactly_zero",
    ),
    Mutation(
        "the policy loss is the more hopeful of its two sides",
        "ppo:policy_loss",
        "torch.minimum(ratio * advantage, ratio.clamp(1.0 - clip, 1.0 + clip) * advantage)",
        "torch.maximum(ratio * advantage, ratio.clamp(1.0 - clip, 1.0 + clip) * advantage)",
        "test_ppo::test_each_loss_equals_the_slow_reference",
    ),
    Mutation(
        "the losses of a training know nothing of the hooks that its roll-outs are under",
        "masked_ppo:hooked",
        "not hooks",
        "True",
        "test_hooks::test_before_the_first_step_the_ratio_is_1",
    ),
    Mutation(
        "an episode that costs its budget exactly is beyond it",
        "episode_rewards:HardGate.__call__",
        "episodes.cost_nano <= episodes.budget_nano",
        "episodes.cost_nano < episodes.budget_nano",
        "test_episode_rewards::test_the_hard_gate_compares_integers",
    ),
    Mutation(
        "cost advantages are not truncated",
        "actor_critic:SampledSurrogate.cost",
        "np.minimum(1.0 / self.behaviour, CLIP / self.target)",
        "1.0 / self.behaviour",
        "test_actor_critic::test_weights_are_truncated_for_cost_and_not_for_the_constraint",
    ),
    Mutation(
        "critics climb their loss, as equation 5 is printed",
        "actor_critic:Critics.fit",
        "0.5",
        "-0.5",
        "test_actor_critic::test_critics_descend_to_their_targets_and_ignore_steps_not_taken",
    ),
    Mutation(
        "the worst right answer counts for coverage, not the best",
        "replay:paths",
        "np.ascontiguousarray(each.T).max(axis=0)",
        "np.where(traces.correct, leaf, np.inf).min(axis=(1, 2))",
        "test_replay::test_kappa_star_over_every_action_subset",
    ),
    Mutation(
        "and the same in training",
        "soft_set:critical_threshold",
        "torch.where(correct, path, -torch.inf).amax(dim=(1, 2))",
        "torch.where(correct, path, torch.inf).amin(dim=(1, 2))",
        "test_soft_set",
    ),
    Mutation(
        "only the set policy's divergence is bounded",
        "trust_region:_acceptable",
        "zip(after.distributions, before.distributions, strict=True)",
        "zip(after.distributions[1:], before.distributions[1:], strict=True)",
        "test_trust_region",
    ),
    Mutation(
        "what is tried again is not set aside from the question's budget",
        "retry:Retrying.complete",
        "attempt = partial(around, partial(self._model.complete, prompt))",
        "attempt = (lambda tried: lambda: (alone if tried or tried.append(1) else around)("
        "partial(self._model.complete, prompt)))([])",
        "test_answers",
    ),
    Mutation(
        "look-ahead follows gain and forgets what it costs",
        "lookahead.policy:best_line",
        "gain / cost",
        "gain",
        "test_lookahead::test_the_best_line_is_the_best_on_offer",
    ),
    Mutation(
        "look-ahead buys what is not on offer",
        "lookahead.policy:best_line",
        "np.where(can, gain / cost, -np.inf)",
        "gain / cost",
        "test_lookahead::test_the_best_line_is_the_best_on_offer",
    ),
    Mutation(
        "the first purchase is not always made",
        "lookahead.policy:ordered",
        "worth[:, 0] = np.inf",
        "pass",
        "test_lookahead_lessons::test_the_first_purchase_is_made_at_every_threshold",
    ),
    Mutation(
        "the state is not brought up to date after a purchase",
        "lookahead.policy:ordered",
        "bought[every[made], line[made, step]] += 1",
        "bought[every[made], line[made, step]] += step == 0",
        "test_lookahead::test_critical_thresholds_against_enumeration",
    ),
    Mutation(
        "the score of going on leaves out what a covered question is worth",
        "lookahead.policy:LookaheadPolicy._decide",
        "worth * self.price_nano",
        "worth",
        "test_lookahead::test_critical_thresholds_against_enumeration",
    ),
    Mutation(
        "a forest goes left only below a threshold, not at it",
        "forest:Forest._total",
        "flat[row + feature[node]] > limit[node]",
        "flat[row + feature[node]] >= limit[node]",
        "test_lookahead::test_an_exported_forest_predicts_what_scikit_learn_does",
    ),
    Mutation(
        "a purchase gains although a right answer was there already",
        "lookahead.learner:_LookaheadTraining._taught",
        "self._covered(after) & ~covered[can]",
        "self._covered(after)",
        "test_lookahead_lessons::test_a_lesson_is_what_each_purchase_and_what_follows_it_gain_and_cost",
    ),
    Mutation(
        "a question is judged by estimates that have seen it",
        "lookahead.learner:_LookaheadTraining.improve",
        "self.fold[self.lesson.row] != k",
        "self.fold[self.lesson.row] == k",
        "test_lookahead_lessons::test_no_question_is_judged_by_estimates_that_have_seen_its_grades",
    ),
    Mutation(
        "what would be bought later is free",
        "lookahead.learner:_LookaheadTraining._taught",
        "cost[can, place] += self._follow(after, judge, price)",
        "self._follow(after, judge, price)",
        "test_lookahead_lessons::test_a_lesson_is_what_each_purchase_and_what_follows_it_gain_and_cost",
    ),
    Mutation(
        "calls that are made together are waited for one after another",
        "lookahead.learner:_LookaheadTraining._buy",
        "np.maximum(wait[made], self.wait_nano[item])",
        "wait[made] + self.wait_nano[item]",
        "test_sequence::test_a_set_is_worth_what_its_calls_bring_and_cost_and_its_slowest_call_takes",
    ),
    Mutation(
        "a set is decided anew after its first call",
        "process.play:continued",
        "np.where(more, following, now.line)",
        "now.line",
        "test_lookahead::test_critical_thresholds_against_enumeration",
    ),
    Mutation(
        "look-ahead buys on when it is not worth its money",
        "lookahead.learner:_LookaheadTraining._follow",
        "worth * price >= 1",
        "worth * price < 1",
        "test_lookahead_lessons::test_a_lesson_is_what_each_purchase_and_what_follows_it_gain_and_cost",
    ),
    Mutation(
        "a purchase is reached by its own worth, whatever came before it",
        "lookahead.learner:visited",
        "np.minimum.accumulate(order.worth, axis=1)",
        "order.worth",
        "test_lookahead_learner::test_visits_step_by_step",
    ),
    Mutation(
        "the price of coverage is that of one question more",
        "lookahead.learner:price_of_coverage",
        "int(alpha * len(critical))",
        "int(alpha * len(critical)) - 1",
        "test_lookahead_learner::test_the_price_of_coverage_is_the_last_worth_that_must_be_bought",
    ),
    Mutation(
        "a missing call in a line does not end it",
        "action_space:items_of",
        "np.logical_and.accumulate(made, axis=2)",
        "made",
        "test_action_space",
    ),
    Mutation(
        "an order is laid out one item late",
        "action_space:cells_of",
        "(lines.cumsum(axis=1) * lines).sum(axis=2) - 1",
        "(lines.cumsum(axis=1) * lines).sum(axis=2)",
        "test_action_space",
    ),
    Mutation(
        "the dearer an answer, the likelier it is returned",
        "set_size_penalty:SetSizePenaltyPolicy._priced",
        "self.inner.price_nano / self.answer_nano",
        "self.answer_nano / self.inner.price_nano",
        "test_set_size_penalty::test_the_dearer_an_answer_the_smaller_the_set",
    ),
    Mutation(
        "votes that are yet to come speak for an answer",
        "set_size_penalty:evidence",
        "step[:, None] >= step",
        "step[:, None] >= 0",
        "test_set_size_penalty::test_evidence_does_not_depend_on_what_comes_later",
    ),
    Mutation(
        "settings are proved behind one that was not",
        "fixed_sequence:proven",
        "np.logical_and.accumulate(np.asarray(p_values) <= delta)",
        "np.asarray(p_values) <= delta",
        "test_fixed_sequence",
    ),
    Mutation(
        "questions without an answer count as wrong ones",
        "answers:selective_p_values",
        "answers.answered & ~answers.correct",
        "~answers.correct",
        "test_selective::test_wrong_answers_are_counted_among_the_answers_and_nothing_else",
    ),
    Mutation(
        "wrong answers are counted among all questions, not among those answered",
        "answers:selective_p_values",
        "binomial_cdf(int(w), int(m), level)",
        "binomial_cdf(int(w), len(answers.correct), level)",
        "test_selective::test_wrong_answers_are_counted_among_the_answers_and_nothing_else",
    ),
    Mutation(
        "each of several candidates is tested at all of delta",
        "fixed_sequence:proven_each",
        "float(delta * share)",
        "float(delta)",
        "test_selective_choice::test_the_promise_fails_no_oftener_than_it_may_whoever_is_chosen",
    ),
    Mutation(
        "thresholds are laid out on the calibration questions",
        "prove_selective:prove_candidates",
        "laid_out(one, asked.alpha)",
        "candidate_thresholds(*(lambda found: (found.followed.leaf.max(axis=(1, 2)), "
        "found.act(1e-9).best_correct))(replay(one.policy, calibrate.played, 'allow')), "
        "asked.alpha, SETTINGS)",
        "test_selective_choice::test_no_calibration_question_moves_a_threshold_or_a_share",
    ),
    Mutation(
        "what is passed on costs nothing",
        "escalation:EscalationModel",
        "np.where(made[:, self.place], 0, self.cost_nano)",
        "np.where(made[:, self.place], 0, 0)",
        "test_selective_choice::test_what_is_passed_on_is_counted_as_the_reference_answers_it",
    ),
    Mutation(
        "parity is tested from the cheapest operating point up",
        "fixed_sequence:cheapest_proven",
        "proven(p_values[::-1], float(delta))[::-1]",
        "proven(p_values, float(delta))",
        "test_agreement::test_testing_begins_at_the_dearest_and_ends_at_the_first_failure",
    ),
    Mutation(
        "parity begins at the cheapest point",
        "paired:parity_proved",
        "range(len(found) - 1, -1, -1)",
        "range(len(found))",
        "test_parity::test_testing_begins_at_the_dearest_and_takes_the_cheapest_proved",
    ),
    Mutation(
        "parity goes on beyond a point that is not proved",
        "paired:parity_proved",
        "break",
        "continue",
        "test_parity::test_testing_begins_at_the_dearest_and_takes_the_cheapest_proved",
    ),
    Mutation(
        "a waiting chain is tested at all of delta",
        "chains:prove_all",
        "shares[place] * whole / left",
        "whole",
        "test_chains::test_it_rejects_what_the_graphical_procedure_rejects",
    ),
    Mutation(
        "a method rehearses on questions that it was fitted to",
        "cross_fit:rehearsed",
        "fold != k",
        "fold >= 0",
        "test_cross_fit::test_no_question_is_answered_by_a_policy_that_was_fitted_to_it",
    ),
    Mutation(
        "questions that are marked to calibrate train",
        "recommendation.splits:more_training",
        "marks[parts.prove] == NO_SPLIT",
        "marks[parts.prove] >= NO_SPLIT",
        "test_side_by_side::test_what_is_marked_to_calibrate_goes_on_proving",
    ),
    Mutation(
        "what has trained goes on proving",
        "recommendation.splits:more_training",
        "np.setdiff1d(parts.prove, rows)",
        "parts.prove",
        "test_side_by_side::test_more_train_step_by_step_and_all_else_stays",
    ),
    Mutation(
        "intervals of a point that these questions chose are those of one",
        "max_t:max_t",
        "np.abs(drawn).max(axis=1)",
        "np.abs(drawn)[:, 0]",
        "test_max_t",
    ),
    Mutation(
        "losses and wins against the reference change places",
        "paired:parity_p_values",
        "test(int(minus), int(plus), n, margin)",
        "test(int(plus), int(minus), n, margin)",
        "test_parity::test_the_p_values_count_losses_and_wins",
    ),
    Mutation(
        "the chance that the nuisance is outside its interval is left out",
        "paired_test:loss_p_value",
        "min(1.0, best + OUTSIDE)",
        "min(1.0, best)",
        "test_paired_test",
    ),
    Mutation(
        "a budget takes the operating point that achieves least",
        "budget:budget_point",
        "np.argmax(achieved[found])",
        "np.argmin(achieved[found])",
        "test_budget::test_it_takes_what_achieves_most_among_what_fits",
    ),
    Mutation(
        "a budget is tested against the mean of these questions",
        "budget:budget_point",
        "mean_p_value(share, target, limit)",
        "float(share.mean() >= target)",
        "test_budget::test_a_point_over_budget_is_as_rare_as_promised",
    ),
    Mutation(
        "the new question's own weight is left out",
        "weighted:_ranks",
        "level.numerator * (before[-1] + weights) - level.denominator * weights",
        "level.numerator * (before[-1] + weights)",
        "test_weighted::test_it_covers_whom_the_weighted_p_value_covers",
    ),
    Mutation(
        "weights do not follow the questions into their order",
        "weighted:_ranks",
        "sample.weights[order]",
        "sample.weights",
        "test_weighted::test_it_covers_whom_the_weighted_p_value_covers",
    ),
    Mutation(
        "in a conversation, a right answer that was given counts among the wrong ones",
        "latent_difficulty:TalkPattern.ways",
        "self.before - found.reshape(right.shape)",
        "self.before",
        "test_latent_difficulty::test_the_next_gain_is_that_of_the_enumerated_histories",
    ),
    Mutation(
        "a guide is expected to answer afresh, however stubborn it is",
        "latent_difficulty:LatentDifficulty.hazard",
        "1 - base - self.guide_persistence * (1 - base - joins)",
        "1 - base",
        "test_latent_difficulty::test_the_next_gain_is_that_of_the_enumerated_histories",
    ),
    Mutation(
        "an answer that was repeated counts as given afresh",
        "fit_latent_difficulty:_step",
        "weight * (1 - base_kept)",
        "weight",
        "test_fit_latent_difficulty::test_no_rate_nearby_is_likelier",
    ),
    Mutation(
        "a mixture takes the worse of two models",
        "estimates:best_share",
        "weight / (weight + (1 - share) * second)",
        "1 - weight / (weight + (1 - share) * second)",
        "test_estimates",
    ),
    Mutation(
        "V-trace is not truncated where it is called",
        "actor_critic:ActorCritic.criticise",
        "importance(wanted, drawn, CLIP)",
        "importance(wanted, drawn)",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "the two advantages change places",
        "actor_critic:ActorCritic.criticise",
        "SampledSurrogate(episodes, drawn, wanted, paid_more, covered_more, seen.level)",
        "SampledSurrogate(episodes, drawn, wanted, covered_more, paid_more, seen.level)",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "each critic learns the other's targets",
        "actor_critic:ActorCritic.criticise",
        "[paid, covered]",
        "[covered, paid]",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "critics learn ten times as fast",
        "actor_critic:Critics.__init__",
        "1e-3",
        "1e-2",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "critics do not learn",
        "actor_critic:ActorCritic.criticise",
        "self._critics.fit(values, np.stack([paid, covered]), episodes.taken, seen.share)",
        "None",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "the sampled coverage starts at what the present policy adds",
        "actor_critic:SampledSurrogate.coverage",
        "self.level + self._mean(new, weight) - kept",
        "self.level + self._mean(new, weight)",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "the network begins anywhere",
        "actor_critic:ActorCritic.__init__",
        "0.01",
        "1.0",
        "test_golden_runs",
    ),
    Mutation(
        "critics begin with the network's seed",
        "actor_critic:ActorCritic.__init__",
        "seed + 1",
        "seed",
        "test_golden_runs",
    ),
    Mutation(
        "episodes and batches share their random numbers",
        "actor_critic:ActorCritic.__init__",
        "[seed, 1]",
        "[seed, 0]",
        "test_golden_runs",
    ),
    Mutation(
        "every seed sees the same batches",
        "actor_critic:QuestionStream",
        "np.random.default_rng([seed, 0])",
        "np.random.default_rng(0)",
        "test_known_answers::test_cpo_online_follows_the_questions_that_ccpo_meets",
    ),
    Mutation(
        "the metric of a step leaves out the set policy",
        "ccpo.learner:_CcpoTraining.update",
        "policy_metric(pi) + set_metric(pi, log_mask, epsilon)",
        "policy_metric(pi)",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "the metric of a step leaves out the policy",
        "ccpo.learner:_CcpoTraining.update",
        "policy_metric(pi) + set_metric(pi, log_mask, epsilon)",
        "set_metric(pi, log_mask, epsilon)",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "training allows itself twice the misses",
        "ccpo.learner:_CcpoTraining.update",
        "1 - self._alpha",
        "1 - 2 * self._alpha",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "a threshold above one is taken as it is",
        "ccpo.learner:_CcpoTraining.update",
        "min(self.threshold.kappa, 1.0)",
        "self.threshold.kappa",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "the region that was asked for is not the step's",
        "ccpo.learner:_CcpoTraining.update",
        "self._config.region",
        "TrustRegion()",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "the threshold follows the policy before the step",
        "ccpo.learner:_CcpoTraining.update",
        "pi = probabilities(done.network, batch.observations)",
        "pass",
        "test_ccpo_wiring::test_the_threshold_and_the_figures_follow_the_new_policy",
    ),
    Mutation(
        "episodes are drawn from the set policy",
        "ccpo.learner:_CcpoTraining._roll_out",
        "draw(behaviour, batch.correct, self.parts.rng)",
        "draw(target, batch.correct, self.parts.rng)",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "the leaf count is not weighted by importance",
        "ccpo.learner:_CcpoTraining._roll_out",
        "weight * leaves",
        "leaves",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "the leaf count multiplies probabilities, not masks",
        "ccpo.learner:_CcpoTraining._roll_out",
        "log_mask.exp().numpy()",
        "target",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "unsolvable questions are not covered in the leaf count",
        "ccpo.learner:_CcpoTraining._roll_out",
        "(weight * leaves).mean() + 1.0 - batch.solvable.mean()",
        "(weight * leaves).mean()",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "nothing is charged for the set",
        "ccpo.learner:_CcpoTraining._roll_out",
        "cost + price * set_charge(episodes, member, self._config.set_size_credit)",
        "cost",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "the leaf count is earned in every round",
        "ccpo.learner:_CcpoTraining._roll_out",
        "episodes.final * leaves[:, None]",
        "episodes.taken * leaves[:, None]",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "the target policy is the one that acts",
        "ccpo.learner:_CcpoTraining._roll_out",
        "RollOut(batch, episodes, behaviour, target, cost, coverage, level, gamma, share)",
        "RollOut(batch, episodes, behaviour, behaviour, cost, coverage, level, gamma, share)",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "the charge for the set forgets its price",
        "ccpo.learner:_CcpoTraining._roll_out",
        "price * set_charge(episodes, member, self._config.set_size_credit)",
        "set_charge(episodes, member, self._config.set_size_credit)",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "the threshold is to miss 1 - alpha",
        "ccpo.learner:_CcpoTraining._follow",
        "update(self.threshold, critical.numpy(), self._alpha)",
        "update(self.threshold, critical.numpy(), 1 - self._alpha)",
        "test_ccpo_wiring::test_the_threshold_and_the_figures_follow_the_new_policy",
    ),
    Mutation(
        "unsolvable questions count as missed in the curves",
        "ccpo.learner:_CcpoTraining._follow",
        "(member & batch.correct).any(axis=(1, 2)) | ~batch.solvable",
        "(member & batch.correct).any(axis=(1, 2))",
        "test_ccpo_wiring::test_the_threshold_and_the_figures_follow_the_new_policy",
    ),
    Mutation(
        "a step may move the policy as far as it likes",
        "ccpo.learner:_SoftSetObjective.__call__",
        "Surrogate(cost, coverage, (probabilities, target))",
        "Surrogate(cost, coverage, (target,))",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "the exact cost of the set has no price",
        "ccpo.learner:_SoftSetObjective._exact_cost",
        "self.config.set_size_price * size",
        "size",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "what is no answer is in the set",
        "ccpo.learner:followed",
        "(path.numpy() >= kappa) & batch.answered",
        "path.numpy() >= kappa",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "CPO allows itself twice the misses",
        "ccpo.learner:_CpoTraining.__init__",
        "1 - alpha",
        "1 - 2 * alpha",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "CPO is to answer what cannot be answered",
        "ccpo.learner:_CpoTraining.update",
        "episodes.right | ~batch.solvable",
        "episodes.right",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "CPO is right in every round before its answer",
        "ccpo.learner:_CpoTraining.update",
        "episodes.final & covered[:, None]",
        "episodes.taken & covered[:, None]",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "CPO steps without its Fisher matrix",
        "ccpo.learner:_CpoTraining.update",
        "policy_metric(pi)",
        "0 * policy_metric(pi)",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "CPO pays for rounds that it does not run",
        "ccpo.learner:_CpoTraining.update",
        "batch.cost * episodes.taken",
        "batch.cost",
        "test_ccpo_wiring::test_the_threshold_and_the_figures_follow_the_new_policy",
    ),
    Mutation(
        "CPO's step takes another region",
        "ccpo.learner:_CpoTraining.update",
        "self._config.region",
        "TrustRegion()",
        "test_ccpo_wiring::test_what_a_step_is_asked_for",
    ),
    Mutation(
        "CPO online is to miss 1 - alpha",
        "ccpo.learner:CpoLearner.fit",
        "run_online(critical[order], alpha, stream.batch)",
        "run_online(critical[order], 1 - alpha, stream.batch)",
        "test_known_answers::test_cpo_online_follows_the_questions_that_ccpo_meets",
    ),
    Mutation(
        "CPO online has no empty set",
        "ccpo.learner:CpoLearner.fit",
        "'allow'",
        "'argmax'",
        "test_known_answers::test_cpo_online_follows_the_questions_that_ccpo_meets",
    ),
    Mutation(
        "CPO online takes each question for a batch",
        "ccpo.learner:CpoLearner.fit",
        "run_online(critical[order], alpha, stream.batch)",
        "run_online(critical[order], alpha, 1)",
        "test_known_answers::test_cpo_online_follows_the_questions_that_ccpo_meets",
    ),
    Mutation(
        "a step makes coverage smaller",
        "trust_region:improve",
        "-coverage_slope.numpy()",
        "coverage_slope.numpy()",
        "test_known_answers",
    ),
    Mutation(
        "a step is hardly damped",
        "trust_region:improve",
        "region.damping",
        "0.01 * region.damping",
        "test_golden_runs",
    ),
    Mutation(
        "the largest cost of a call is at the first tier's price",
        "prices:TokenPrice.largest_nano",
        "(self.rates[0], *reached)",
        "self.rates[:1]",
        "test_dearest_tier",
    ),
    Mutation(
        "a question pays nothing for what has no known cost",
        "meter:CallBudget.settle",
        "cost_nano = held.nano",
        "cost_nano = 0",
        "test_unknown_costs",
    ),
    Mutation(
        "the journal counts nothing for what has no known cost",
        "journal:StoreJournal._finish",
        "held.nano if cost_nano is None else cost_nano",
        "cost_nano or 0",
        "test_unknown_costs",
    ),
    Mutation(
        "what fails half-way is not rolled back",
        "budgets.ledger:atomic",
        "connection.execute('ROLLBACK TO atomic')",
        "None",
        "test_atomic",
    ),
    Mutation(
        "one prompt sent twice is one call",
        "journal:entry",
        "[attempt, asked, content, occurrence]",
        "[attempt, asked, content]",
        "test_repeated_calls",
    ),
    Mutation(
        "a row of models is judged on the questions that it was fitted to",
        "pool_gain:_left_out",
        "steps.take(fold != k)",
        "steps",
        "test_out_of_fold",
    ),
    Mutation(
        "forest and line are weighed on the questions that they were fitted to",
        "lookahead.learner:_LookaheadTraining._mixed",
        "self.fold[lesson.row] == k",
        "self.fold[lesson.row] != k",
        "test_out_of_fold",
    ),
    Mutation(
        "the settings of a parity promise are laid out on the calibration questions",
        "prove:_proof",
        "beginning(asked, plays, train, role, len(calibrate.recorded))",
        "beginning(asked, plays, calibrate, role, len(calibrate.recorded))",
        "test_held_out_questions",
    ),
    Mutation(
        "weights are fitted to the calibration questions",
        "target_mix:weigh",
        "fit_density_ratio(old.first, new.first)",
        "fit_density_ratio(shown.first, new.first)",
        "test_held_out_questions",
    ),
    Mutation(
        "the rank of a PAC threshold is one too high",
        "pac:pac_threshold",
        "pac_rank(len(scores), level, exact_level(delta, 'delta'))",
        "pac_rank(len(scores), level, exact_level(delta, 'delta')) + 1",
        "test_reported_interval::"
        "test_a_pac_threshold_covers_less_than_promised_as_rarely_as_delta_says",
    ),
    Mutation(
        "what a role's call may cost is not what the bundle declares",
        "runtime.run:QuestionRun._declared",
        "declared.get(agent.role, declared.get(agent.model.name))",
        "None",
        "test_question_budgets::test_under_its_budget_a_live_question_goes_as_it_is_replayed",
    ),
    Mutation(
        "a live policy does not see what is left of the budget",
        "runtime.run:QuestionRun._budget_of",
        "Budget(left_nano + int(seen.cost_nano.sum()), largest)",
        "Budget(2**62, largest)",
        "test_question_budgets::test_under_its_budget_a_live_question_goes_as_it_is_replayed",
    ),
    Mutation(
        "a call of unknown cost counts as free in a replay under a budget",
        "costs:charged_nano",
        "call.largest_cost_usd if call.cost_usd is None else call.cost_usd",
        "call.cost_usd",
        "test_question_budgets::test_under_its_budget_a_live_question_goes_as_it_is_replayed",
    ),
    Mutation(
        "questions that prove choose the method",
        "recommendation.plan:Plan.choosing",
        "self.parts.choose",
        "self.parts.prove",
        "test_what_each_question_decides::test_a_part_decides_what_it_is_for",
    ),
    Mutation(
        "questions that chose the method prove its promise",
        "recommendation.plan:Plan.proving",
        "self.parts.prove",
        "self.parts.choose",
        "test_what_each_question_decides::test_a_part_decides_what_it_is_for",
    ),
    Mutation(
        "questions that prove the promise measure what came of it",
        "recommendation.plan:Plan.reporting",
        "self.parts.report",
        "self.parts.prove",
        "test_recommend::"
        "test_the_certificate_is_of_the_proving_questions_and_the_figures_of_the_last",
    ),
    Mutation(
        "questions that are marked to train choose and prove",
        "recommendation.splits:split_four_ways",
        "split != 0",
        "split != 1",
        "test_recommend::test_parts_are_disjoint_and_keep_to_the_marks",
    ),
    Mutation(
        "a bundle forgets which questions chose its method",
        "selection:Selection.remembered",
        "{**bundle.questions, 'choose': chose}",
        "bundle.questions",
        "test_recommend::test_questions_that_chose_prove_nothing_later",
    ),
    Mutation(
        "what is cheaper than a point that is not proved is used",
        "expected_cost:expected_cost",
        "np.where(proved[:, point : point + 1], cheaper, np.inf)",
        "np.where(proved[:, point : point + 1], cheaper, best)",
        "test_expected_cost::test_it_is_what_loops_come_to",
    ),
    Mutation(
        "the last point that is proved is used, not the cheapest",
        "expected_cost:expected_cost",
        "np.minimum(cost[:, point : point + 1], best)",
        "cost[:, point : point + 1]",
        "test_expected_cost::test_it_is_what_loops_come_to",
    ),
    Mutation(
        "two that agree are not enough where two are needed",
        "cascades.agreement:AgreementCascadePolicy._step",
        "most >= needed",
        "most > needed",
        "test_agreement_cascade::test_points_are_what_loops_come_to",
    ),
    Mutation(
        "models are asked that can no longer agree",
        "cascades.agreement:AgreementCascadePolicy._step",
        "most + waiting.sum(axis=1) >= needed",
        "most + waiting.sum(axis=1) >= 0",
        "test_agreement_cascade::test_points_are_what_loops_come_to",
    ),
    Mutation(
        "a question that is marked to train is held out",
        "traces.splits:by_shares",
        "np.setdiff1d(together.distinct, train)",
        "together.distinct",
        "test_splits::test_shares_keep_to_the_marks",
    ),
    Mutation(
        "a pacer asks less for a dollar, the more is spent",
        "pacing.dual_descent:gradient",
        "1.0 - spent_nano / state.share_nano",
        "spent_nano / state.share_nano - 1.0",
        "test_dual_descent::test_prices_are_those_of_the_printed_algorithm",
    ),
    Mutation(
        "what is reserved for requests under way can be spent again",
        "budgets.pacing.base:PacingState.left_nano",
        "self.budget_nano - self.spent_nano - self.reserved_nano",
        "self.budget_nano - self.spent_nano",
        "test_conformance::test_never_above_the_budget_whatever_arrives",
    ),
    Mutation(
        "a gambler for a mean sees what it bets on",
        "confidence_sequence:_observe",
        "_bets(sums[:-1] + _PRIOR, state.n + np.arange(len(x)), candidates, enough)",
        "_bets(sums[1:] + _PRIOR, state.n + np.arange(len(x)), candidates, enough)",
        "test_confidence_sequence::test_it_ever_misses_as_rarely_as_promised",
    ),
    Mutation(
        "a test of a promise does not ask how audits were drawn",
        "drift:PromiseTest.followed",
        "w[:, None] * (f - self.alpha)[:, None] / self.alpha",
        "(f - self.alpha)[:, None] / self.alpha",
        "test_drift::test_a_kept_promise_that_is_audited_where_it_is_hard_needs_weights",
    ),
    Mutation(
        "more is staked on late starts than there is",
        "drift:Fortune.after",
        "np.log(self.waiting * _SPREAD / (later * (later + 1.0)) / sizes)",
        "np.log(self.waiting * _SPREAD / later / sizes)",
        "test_drift::test_no_more_is_staked_than_there_is",
    ),
    Mutation(
        "a value is not ranked among itself",
        "drift:p_values",
        "u * (equal + 1)",
        "u * equal",
        "test_drift::test_p_values_are_those_of_crepes",
    ),
    Mutation(
        "the small model is asked for more than is left",
        "bopo.policy:affordable",
        "largest_nano[:, 0] <= left_nano",
        "largest_nano[:, 0] <= left_nano + 1",
        "test_bopo::test_the_mask_is_exact_at_its_edges",
    ),
    Mutation(
        "varentropy speaks for a sample",
        "odar.learner:free_energy",
        "surprisal + weight * varentropy",
        "surprisal - weight * varentropy",
        "test_odar::test_of_two_equally_likely_samples_the_even_one_is_chosen",
    ),
    Mutation(
        "a step to the mode of an ability may leap over it",
        "estimators.v0:ability",
        "step = step / 2.0",
        "break",
        "test_v0::test_the_ability_is_the_mode_that_a_general_optimiser_finds",
    ),
    Mutation(
        "what nobody said yet counts as one answer",
        "bayesian_judges:Judges.gain",
        "np.maximum(new, best * unheard)",
        "np.maximum(new, best)",
        "test_judges::test_a_gain_is_what_trying_every_next_reply_says",
    ),
    Mutation(
        "what rounding leaves of a task's budget is lost",
        "plan_and_budget:whole",
        "left % len(each)",
        "0",
        "test_plan_and_budget::test_rounding_gives_whole_numbers_whatever_was_lost",
    ),
    Mutation(
        "a trial is made beyond the budget",
        "allocators.agent_tts:AgentTts.maximise",
        "not space.fits(choice)",
        "False",
        "test_agent_tts::test_nothing_beyond_the_budget_is_tried",
    ),
    Mutation(
        "roll-outs are rounded up beyond their tokens",
        "corl.allocations:rounded",
        "np.floor(share + 1e-9)",
        "np.ceil(share + 1e-9)",
        "test_budgeted_allocations::test_the_tokens_are_the_budget",
    ),
    Mutation(
        "a shrunk baseline does not count episodes",
        "group_advantage:weight",
        "ratio / (ratio + 1.0 / size)",
        "ratio / (ratio + 1.0)",
        "test_shrunk_baseline::test_the_estimated_weight_comes_near_to_it",
    ),
    Mutation(
        "points of parity are said to be proved at all of delta",
        "kinds.parity:Parity.proved",
        "exact_level(self.delta, 'delta') * self.share",
        "exact_level(self.delta, 'delta')",
        "test_shares_of_delta",
    ),
    Mutation(
        "points of agreement are said to be proved at all of delta",
        "kinds.agreement:Agreement.proved",
        "exact_level(self.delta) * self.share",
        "exact_level(self.delta)",
        "test_shares_of_delta",
    ),
    Mutation(
        "points of the whole are said to be proved at all of delta",
        "kinds.escalated:escalated_proved",
        "exact_level(delta, 'delta') * answers.share * HALF",
        "exact_level(delta, 'delta') * HALF",
        "test_shares_of_delta",
    ),
    Mutation(
        "what is given and the whole have all of delta each",
        "kinds.escalated:escalated_proved",
        "exact_level(delta, 'delta') * answers.share * HALF",
        "exact_level(delta, 'delta') * answers.share",
        "test_shares_of_delta",
    ),
    Mutation(
        "answers are said to be right often enough at all of delta",
        "promises.answers:selective_proved",
        "exact_level(delta, 'delta') * answers.share",
        "exact_level(delta, 'delta')",
        "test_shares_of_delta",
    ),
    Mutation(
        "chains may have two deltas together",
        "promises.chains:prove_all",
        "whole > 1",
        "whole > 2",
        "test_shares_of_delta::test_shares_that_add_up_to_more_than_delta_are_refused",
    ),
    Mutation(
        "candidates may have two deltas together",
        "fixed_sequence:Candidates.__post_init__",
        "sum(self.shares) > 1",
        "sum(self.shares) > 2",
        "test_shares_of_delta::test_shares_that_add_up_to_more_than_delta_are_refused",
    ),
    Mutation(
        "the chance of a draw does not reach the proof",
        "recommendation.prove:_known",
        "draw_weights(recorded)",
        "None",
        "test_wiring::test_a_question_counts_by_the_probability_of_its_draw",
    ),
    Mutation(
        "weights do not keep parity from counting losses",
        "promises.paired:Paired.exact",
        "self.sample is None and self.weights is None and self.clusters is None",
        "self.sample is None and self.clusters is None",
        "test_wiring::test_losses_that_were_seldom_drawn_are_many",
    ),
    Mutation(
        "proving questions bound how often one counts",
        "recommendation.prove:_clusters",
        "asked_first(train.recorded.content)",
        "asked_first(calibrate.recorded.content)",
        "test_wiring::test_the_bound_of_a_promise_per_request_is_of_training",
    ),
    Mutation(
        "proving questions name the reference",
        "recommendation.prove:_reference_of",
        "paid_most(train.recorded)",
        "paid_most(calibrate.recorded)",
        "test_wiring::test_who_is_paid_most_in_training_is_the_reference",
    ),
    Mutation(
        "what cannot be weighed is proved of unequal draws",
        "recommendation.prove:prove",
        "check_alike(calibrate.recorded)",
        "None",
        "test_wiring::test_what_cannot_weigh_questions_refuses_those_that_were_not_drawn_alike",
    ),
    Mutation(
        "figures are of the questions as they were drawn",
        "api.policy:Policy.evaluate",
        "alike(some, np.arange(len(some)))",
        "np.arange(len(some))",
        "test_wiring::test_an_evaluation_counts_questions_as_if_they_were_drawn_alike",
    ),
    Mutation(
        "figures of a folder are of the questions as they were drawn",
        "recommendation.evaluate:evaluate",
        "alike(traces, parts.test)",
        "parts.test",
        "test_wiring::test_a_folder_is_evaluated_as_if_all_were_drawn_alike",
    ),
    Mutation(
        "figures of what these questions chose are those of one point",
        "recommendation.recommend:_errors",
        "off_by(points, (paid, right), np.random.default_rng(plan.seed), level)",
        "1.96",
        "test_wiring::test_figures_of_questions_that_chose_allow_for_the_choice",
    ),
    Mutation(
        "at worst unknown calls train",
        "recommendation.plan:plans_of",
        "np.intersect1d(some.train, whole)",
        "some.train",
        "test_wiring::test_at_worst_no_question_with_an_unknown_call_trains",
    ),
    Mutation(
        "an interval by request errs at all of delta at either end",
        "clusters:clustered_interval",
        "delta / 2",
        "delta",
        "test_clusters::test_an_interval_errs_at_half_of_delta_at_either_end",
    ),
    Mutation(
        "a share by request errs at all of delta at either end",
        "clusters:clustered_share",
        "delta / 2",
        "delta",
        "test_clusters::test_an_interval_errs_at_half_of_delta_at_either_end",
    ),
    Mutation(
        "at worst an unknown call is of no use",
        "traces.arrays:TraceArrays.solvable",
        "solvable | ~self.made.all(axis=(1, 2)) if self.at_worst else solvable",
        "solvable",
        "test_wiring::test_at_worst_an_unknown_call_would_have_been_right",
    ),
    Mutation(
        "one mark says that chance made all holes",
        "traces.eligibility:_why",
        "(reason == WHY_MISSING.index('chance')).all()",
        "(reason == WHY_MISSING.index('chance')).any()",
        "test_wiring::test_one_mark_says_nothing_of_other_holes",
    ),
    Mutation(
        "one probability says that chance made all holes",
        "traces.eligibility:_why",
        "by_chance[whole][:, some].all()",
        "by_chance[whole][:, some].any()",
        "test_wiring::test_one_probability_says_nothing_of_other_calls",
    ),
    Mutation(
        "cents are read as dollars",
        "importers.table:_recorded",
        "cents / 100",
        "cents",
        "test_importers::test_a_number_of_a_table_is_read_in_its_unit",
    ),
    Mutation(
        "tries that failed are outside a request's budget",
        "farthing_gateway.paid_call:PaidCall._largest",
        "self.charges.spent_nano",
        "0",
        "test_money_wiring::test_a_try_that_failed_counts_in_the_budget_of_its_request",
    ),
    Mutation(
        "tries that failed are outside a reply's cost",
        "farthing_gateway.paid_call:PaidCall.send",
        "add_cost(done.failed_nano, done.value.cost_nano)",
        "done.value.cost_nano",
        "test_upstream::test_each_try_is_reserved_and_all_are_summed",
    ),
    Mutation(
        "tries that failed are outside what a request spent",
        "farthing_gateway.charging:RequestCharges.spent_nano",
        "self.tries",
        "self.tries[-1:]",
        "test_money_wiring::test_a_try_that_failed_is_in_the_cost_of_its_reply",
    ),
    Mutation(
        "a claim of too much money alone is not disputed",
        "farthing_gateway.charging:disputed",
        "nano > 0 or tokens > 0",
        "tokens > 0",
        "test_money_wiring::test_a_claim_beyond_one_bound_alone_is_disputed",
    ),
    Mutation(
        "a claim of too many tokens alone is not disputed",
        "farthing_gateway.charging:disputed",
        "nano > 0 or tokens > 0",
        "nano > 0",
        "test_money_wiring::test_a_claim_beyond_one_bound_alone_is_disputed",
    ),
    Mutation(
        "what a policy saves is all that the strongest would have cost",
        "farthing_gateway.policy_reply:answer_with_policy",
        "would - cost",
        "would",
        "test_policies::test_what_a_policy_saves_is_less_what_it_cost",
    ),
    Mutation(
        "a gate's bounds are of the questions that it was fitted to",
        "conformal_routing:ConformalRoutingLearner.learn",
        "np.random.default_rng(seed).permutation(len(train)) < len(train) // 2",
        "np.random.default_rng(seed).permutation(len(train)) < 0.75 * len(train)",
        "test_conformal_routing::test_the_gate_is_fitted_to_one_half_and_its_bounds_are_of_the_other",
    ),
    Mutation(
        "a gate is fitted to all questions",
        "conformal_routing:ConformalRoutingLearner.learn",
        "weights = logistic(vectors, violated[gate], STRENGTH)",
        "weights = logistic(embedded(train, self.embedding), violated, STRENGTH)",
        "test_conformal_routing::test_the_gate_is_fitted_to_one_half_and_its_bounds_are_of_the_other",
    ),
)


def definitions(node: ast.AST, inside: str = "") -> Iterator[tuple[str, Definition]]:
    """Yield functions and classes with their qualified names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            yield inside + child.name, child
            yield from definitions(child, f"{inside}{child.name}.")
        else:
            yield from definitions(child, inside)


def only(found: list[Path], what: str) -> Path:
    assert len(found) == 1, f"{what} is in {len(found)} places, not in one: {found}"
    return found[0]


def source_of(place: str) -> tuple[Path, Definition]:
    """Return the file that a place is in, and its definition."""
    module, name = place.split(":")
    found = {
        path: definition
        for source in SOURCES
        for path in source.rglob(f"{module.replace('.', '/')}.py")
        for qualified, definition in definitions(ast.parse(path.read_bytes()))
        if qualified == name
    }
    path = only(list(found), place)
    return path, found[path]


def piece(text: str) -> ast.expr | ast.stmt:
    """Parse one expression or one statement."""
    (statement,) = ast.parse(text).body
    return statement.value if isinstance(statement, ast.Expr) else statement


def mutated(mutation: Mutation) -> tuple[Path, bytes]:
    """Return a source's path, and its text with the mistake in it."""
    path, definition = source_of(mutation.place)
    right = piece(mutation.right)
    found = [node for node in ast.walk(definition) if ast.dump(node) == ast.dump(right)]
    assert len(found) == 1, f"{mutation.place} has {mutation.right!r} {len(found)} times"
    (node,) = found
    assert isinstance(node, ast.expr | ast.stmt)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    lines = path.read_bytes().splitlines(keepends=True)
    first = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    last = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    text = b"".join(lines)
    wrong = f"({mutation.wrong})" if isinstance(node, ast.expr) else mutation.wrong
    return path, text[:first] + wrong.encode() + text[last:]


def named_tests(mutation: Mutation) -> str:
    """Return what pytest calls the tests."""
    file, _, name = mutation.tests.partition("::")
    found = [*ROOT.glob(f"packages/*/tests/**/{file}.py"), *ROOT.glob(f"tests/**/{file}.py")]
    if name:
        found = [path for path in found if f"\ndef {name}(" in path.read_text()]
    path = only(found, mutation.tests).relative_to(ROOT).as_posix()
    return f"{path}::{name}" if name else path


def run(tests: set[str], source: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-qx", "--noconftest", "-p", "no:cacheprovider"]
    command += ["-m", "slow or not slow"]
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [*command, *sorted(tests)],
        cwd=ROOT,
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("mutations") / "src"
    for one in SOURCES:
        pattern = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(one, source, ignore=pattern, dirs_exist_ok=True)
    return source


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_each_mutation_has_its_place_and_its_tests(mutation: Mutation) -> None:
    path, text = mutated(mutation)
    compile(text, str(path), "exec")
    assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(path.read_bytes()))
    assert named_tests(mutation)


def test_mutations_have_names_of_their_own() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)


@pytest.mark.mutations
def test_the_tests_run_against_the_copy_and_pass(copy: Path) -> None:
    where = "import farthing; print(farthing.__file__)"
    imported = subprocess.check_output(
        [sys.executable, "-c", where], text=True, env={**os.environ, "PYTHONPATH": str(copy)}
    )
    assert Path(imported.strip()).is_relative_to(copy)
    done = run({named_tests(mutation) for mutation in MUTATIONS}, copy)
    assert done.returncode == 0, done.stdout


@pytest.mark.mutations
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_tests_fail_when_the_code_is_wrong(mutation: Mutation, copy: Path) -> None:
    path, wrong = mutated(mutation)
    (copied,) = (copy / path.relative_to(one) for one in SOURCES if path.is_relative_to(one))
    right = copied.read_bytes()
    copied.write_bytes(wrong)
    try:
        done = run({named_tests(mutation)}, copy)
    finally:
        copied.write_bytes(right)
    assert done.returncode == 1, f"{mutation.tests} did not notice:\n{done.stdout[-2_000:]}"
    assert " failed" in done.stdout
