"""Recorded questions as a Gymnasium environment, for learners from elsewhere.

One episode is one question; an action takes one answer or goes on, as a pointwise policy does.
Farthing's own learners do not need it: `farthing.process.replay` follows all branches of all
questions at once, and both agree on what every action costs and answers.
"""

from typing import Any

import numpy as np
from gymnasium import Env
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from farthing.errors import InputError
from farthing.features.rounds import CLIP, FeatureSet
from farthing.money import usd_from_nano
from farthing.traces.arrays import TraceArrays

Observation = NDArray[np.float32]


class TraceEnv(Env[Observation, np.int64]):
    """Replays one recorded question an episode.

    * Observation: the features of the present round, [F], standardised and within [-10, 10].
    * Actions: the L roles in order (return that role's answer, which ends the episode), then `next`
      (run another round). `next` is impossible in round T: `info["action_mask"]` says so, in the
      form that `action_space.sample(mask)` takes. Taken all the same, it ends the episode with no
      answer, as in `replay.sample`.
    * Reward: minus the price in USD of the round that was decided on. Every decision is made after
      its round was paid for, so the rewards of an episode sum to minus its cost.
    * `info`: `question` (id), `round` (from 1), `action_mask` (int8, [L + 1]), and after the last
      step `cost_nano` (integer nano-dollars of the episode), `correct` (the answer that was
      returned is right) and `covered` (that, or no recorded answer is right).

    Which question an episode is about is drawn evenly from the environment's own generator, seeded
    by `reset(seed=...)`, or given: `reset(options={"question": 3})` takes row 3 of the traces.

    >>> from farthing_lab.generator.generate import generate
    >>> from farthing_lab.generator.presets import preset
    >>> traces = generate(preset("mmlu-llama2-7b").config, 100, np.random.default_rng(0))
    >>> env = TraceEnv(traces, FeatureSet.fit(traces))
    >>> _, info = env.reset(options={"question": 0})
    >>> info["question"], info["round"], info["action_mask"]
    ('generated-000001', 1, array([1, 1, 1], dtype=int8))
    >>> _, reward, terminated, _, info = env.step(np.int64(1))
    >>> reward == -info["cost_nano"] / 1e9, terminated, info["covered"]
    (True, True, False)
    """

    def __init__(self, traces: TraceArrays, features: FeatureSet) -> None:
        """Take the questions, and the features that were fitted on a training split.

        Raises:
            InputError: there is no question, one was recorded in part only, or the features were
                fitted for traces of another kind.
        """
        if not len(traces):
            raise InputError("an environment needs at least one question; these traces have none")
        if not traces.complete.all():
            raise InputError(
                f"{(~traces.complete).sum()} of {len(traces)} questions were recorded in part, so "
                "`next` has no outcome there; take(traces.complete) leaves them out"
            )
        self._traces = traces
        self._observations = features.transform(traces).astype(np.float32)
        self._price = traces.round_cost_nano
        self._solvable = traces.solvable
        self._question = 0
        self._round = 0
        self.observation_space = Box(-CLIP, CLIP, (len(features.names),), np.float32)
        self.action_space = Discrete(traces.n_roles + 1)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin a question; its round 1 has been run.

        Raises:
            InputError: `options["question"]` is no row of the traces.
        """
        super().reset(seed=seed)
        n = len(self._traces)
        chosen = (options or {}).get("question")
        question = int(self.np_random.integers(n) if chosen is None else chosen)
        if not 0 <= question < n:
            raise InputError(f"there is no question {question}; they are numbered 0 to {n - 1}")
        self._question, self._round = question, 0
        return self._observation(), self._info()

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Return an answer, or go on.

        Returns:
            Observation, reward in USD, whether the episode is over, False (never cut short), info.
            The observation after the last step is that of the last round.

        Raises:
            InputError: there is no such action.
        """
        if not self.action_space.contains(np.int64(action)):
            last = self._traces.n_roles
            raise InputError(f"there is no action {action}; they are numbered 0 to {last} (`next`)")
        price = self._price[self._question, : self._round + 1]
        reward = -usd_from_nano(price[-1])
        goes_on = action == self._traces.n_roles
        if goes_on and self._round + 1 < self._traces.horizon:
            self._round += 1
            return self._observation(), reward, False, False, self._info()
        correct = not goes_on and bool(self._traces.correct[self._question, self._round, action])
        ended = {
            "cost_nano": int(price.sum()),
            "correct": correct,
            "covered": correct or not self._solvable[self._question],
        }
        return self._observation(), reward, True, False, self._info() | ended

    def _observation(self) -> Observation:
        shown: Observation = self._observations[self._question, self._round].copy()
        return shown

    def _info(self) -> dict[str, Any]:
        mask = np.ones(self._traces.n_roles + 1, dtype=np.int8)
        mask[-1] = self._round + 1 < self._traces.horizon
        return {
            "question": str(self._traces.ids[self._question]),
            "round": self._round + 1,
            "action_mask": mask,
        }
