"""SEQUOIA: which of many pending tasks to work on this round, by learned values in a program.

A task has a state, which changes when somebody works on it, and perhaps when nobody does. Each
round has a budget that all tasks share, and no round can have what another left. What counts is
what the states are worth after the last round. With v(t, i, s) the value of task i in state s
before round t, a round is the integer program

    largest sum over i and a of x(i, a) E[v(t + 1, i, s') | s, a]
    with one action a for each task i, and costs within the budget

which HiGHS solves exactly. The values are learned: episodes are played by the program as it is, a
share of the rounds at random, and v(t) is the sum of one number for each task's state that is
nearest to what came of them (least squares). Then episodes are played anew.

n tasks, S states, A actions, T rounds. An action costs whole nano-dollars; the first, to wait,
costs nothing.

Source: SEQUOIA (reinforcement learning with combinatorial actions for coupled restless bandits,
arXiv 2503.01919), as its abstract says it. Its network of all states together is a sum of one
number for each state here, which the program holds without further variables.
"""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from farthing.errors import InputError
from farthing.traces.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class PendingTasks:
    """Tasks with as many states and actions each, and the rounds that they are worked on in."""

    chance: FloatArray
    """[n, S, A, S] of the next state."""
    cost_nano: IntArray
    """[n, A] of an action; the first is to wait."""
    worth: FloatArray
    """[n, S] of a state after the last round."""
    budget_nano: int
    """Of each round."""
    rounds: int

    def __post_init__(self) -> None:
        if not np.allclose(self.chance.sum(axis=-1), 1.0) or (self.chance < 0.0).any():
            raise InputError("the chances of a task's next state have to add up to 1")
        if self.cost_nano[:, 0].any() or (self.cost_nano < 0).any():
            raise InputError("to wait has to cost $0, and no action less")

    @property
    def size(self) -> tuple[int, int, int]:
        n, states, actions, _ = self.chance.shape
        return n, states, actions

    def step(self, states: IntArray, actions: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw what becomes of all tasks in a round, [n]."""
        odds = self.chance[np.arange(len(states)), states, actions].cumsum(axis=1)
        found: IntArray = (rng.random((len(states), 1)) > odds).sum(axis=1)
        return found.clip(max=odds.shape[1] - 1)

    def gains(self, states: IntArray, values: FloatArray) -> FloatArray:
        """Return what each action leads to on average, [n, A], by values [n, S] of states."""
        odds = self.chance[np.arange(len(states)), states]
        found: FloatArray = np.einsum("nas,ns->na", odds, values)
        return found


def program(gain: FloatArray, cost_nano: IntArray, budget_nano: int) -> IntArray:
    """Return the action of each task, [n], whose gains add up to most within a budget.

    Args:
        gain: [n, A] of each action.
        cost_nano: [n, A]
        budget_nano: of all together; what costs nothing is always within it.

    >>> program(np.array([[0, 0.5, 0.9], [0, 0.3, 0.6]]), np.array([[0, 4, 9], [0, 4, 9]]), 9)
    array([2, 0])
    """
    n, actions = gain.shape
    once = np.kron(np.eye(n), np.ones(actions))
    found = milp(
        -gain.ravel(),
        constraints=[
            LinearConstraint(once, 1, 1),
            LinearConstraint(cost_nano.ravel(), -np.inf, budget_nano),
        ],
        integrality=np.ones(n * actions),
        bounds=Bounds(0, 1),
    )
    shares = np.asarray(found.x).reshape(n, actions)
    chosen: IntArray = shares.argmax(axis=1)
    return chosen


@dataclass(frozen=True)
class RoundPolicy:
    """Works on tasks by values of their states."""

    tasks: PendingTasks
    values: FloatArray
    """[T + 1, n, S] before each round, and after the last."""

    @classmethod
    def myopic(cls, tasks: PendingTasks) -> "RoundPolicy":
        return cls(tasks, np.repeat(tasks.worth[None], tasks.rounds + 1, axis=0))

    def act(self, at: int, states: IntArray) -> IntArray:
        """Return what is done with each task in a round, [n]."""
        gain = self.tasks.gains(states, self.values[at + 1])
        return program(gain, self.tasks.cost_nano, self.tasks.budget_nano)


@dataclass(frozen=True)
class Sequoia:
    """Learns the values."""

    sweeps: int = 4
    """How often values are learned anew."""
    episodes: int = 100
    """Played for each of them."""
    explore: float = 0.3
    """Share of the rounds that are done at random."""
    ridge: float = 0.1

    def fit(self, tasks: PendingTasks, begin: IntArray, rng: np.random.Generator) -> RoundPolicy:
        """Return a policy for tasks that begin in these states, [n].

        Some of its episodes begin elsewhere, so that no state is unknown.
        """
        policy = RoundPolicy.myopic(tasks)
        n, states, _ = tasks.size
        for _ in range(self.sweeps):
            seen = np.zeros((self.episodes, tasks.rounds, n), np.int64)
            earned = np.zeros(self.episodes)
            for row in range(self.episodes):
                now = begin if row % 2 else rng.integers(states, size=n)
                for at in range(tasks.rounds):
                    seen[row, at] = now
                    free = rng.random() < self.explore
                    done = at_random(tasks, rng) if free else policy.act(at, now)
                    now = tasks.step(now, done, rng)
                earned[row] = tasks.worth[np.arange(n), now].sum()
            policy = replace(policy, values=self._values(tasks, seen, earned))
        return policy

    def _values(self, tasks: PendingTasks, seen: IntArray, earned: FloatArray) -> FloatArray:
        """Return the values nearest to what came of episodes, [T + 1, n, S]."""
        n, states, _ = tasks.size
        values = np.repeat(tasks.worth[None], tasks.rounds + 1, axis=0)
        prior = tasks.worth.ravel()
        for at in range(tasks.rounds):
            rows = np.eye(states)[seen[:, at]].reshape(len(seen), n * states)
            gram = rows.T @ rows + self.ridge * np.eye(n * states)
            apart = np.linalg.solve(gram, rows.T @ (earned - rows @ prior))
            values[at] = (prior + apart).reshape(n, states)
        return values


def at_random(tasks: PendingTasks, rng: np.random.Generator) -> IntArray:
    """Draw actions within a round's budget: in a random order, each task any that is left, [n]."""
    n = tasks.size[0]
    done, left = np.zeros(n, np.int64), tasks.budget_nano
    for task in rng.permutation(n):
        can = np.flatnonzero(tasks.cost_nano[task] <= left)
        done[task] = can[int(rng.integers(len(can)))]
        left -= int(tasks.cost_nano[task, done[task]])
    return done


def optimum(tasks: PendingTasks) -> FloatArray:
    """Return the most that can be earned from each of all tasks' states on, [S, ..., S].

    By dynamic programming over them together: for a few tasks alone.
    """
    return following(tasks, None)


def following(tasks: PendingTasks, policy: RoundPolicy | None) -> FloatArray:
    """Return what a policy earns on average from each of all tasks' states on; None: the best."""
    n, states, actions = tasks.size
    every = [np.array(one) for one in product(range(states), repeat=n)]
    done = [np.array(one) for one in product(range(actions), repeat=n)]
    costs = [tasks.cost_nano[np.arange(n), one].sum() for one in done]
    allowed = [one for one, cost in zip(done, costs, strict=True) if cost <= tasks.budget_nano]
    value = np.array([tasks.worth[np.arange(n), one].sum() for one in every]).reshape([states] * n)
    for at in reversed(range(tasks.rounds)):
        before = np.zeros_like(value)
        for now in every:
            choices = allowed if policy is None else [policy.act(at, now)]
            before[tuple(now)] = max(_expected(tasks, value, now, done) for done in choices)
        value = before
    return value


def _expected(tasks: PendingTasks, value: FloatArray, now: IntArray, done: IntArray) -> float:
    found = value
    for task in range(len(now)):
        found = tasks.chance[task, now[task], done[task]] @ found.reshape(value.shape[0], -1)
        found = found.reshape(-1)
    return float(found[0])
