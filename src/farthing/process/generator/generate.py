"""A generator of questions with known probabilities: the paper's protocol, made up but exact.

Nothing here was said by a language model. Every question has a hidden difficulty; base and guide
answer, agree and err with probabilities that are written down, so the cheapest policy is known
(`farthing.process.generator.optimum`). `docs/generator.md` tells the story behind each number.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InputError
from farthing.traces.arrays import NO_SPLIT, BoolArray, IntArray, Signal, TraceArrays

MAX_ROUNDS = 16
MODELS = ("generator-base", "generator-guide")
"""The names that made-up calls carry in place of models'."""
RIGHT = 0
"""The hidden code of the right answer; the wrong ones are 1..W."""
NOBODY = -1
"""The hidden code of an answer that was not given yet."""
LARGEST_ENTROPY = float(np.log(2))
"""Entropy of a fair yes or no, in nats: where the scale of the guide's uncertainty ends."""

Codes = NDArray[np.int64]


def _require(holds: bool, problem: str) -> None:  # noqa: FBT001
    if not holds:
        raise InputError(f"generator: {problem}")


@dataclass(frozen=True)
class Level:
    """One degree of difficulty, and how well both agents do on it."""

    weight: float
    """Share of the questions, relative to the other levels' weights."""
    base_first: float
    """P(the base is right in round 1)."""
    base_later: float
    """P(a fresh answer of the base is right in a later round)."""
    guide: float
    """P(a fresh answer of the guide is right, having rejected a wrong one)."""
    yes_if_right: float
    """P(the guide's verdict is yes) when the base is right."""
    yes_if_wrong: float
    """P(the guide's verdict is yes) when the base is wrong."""

    def __post_init__(self) -> None:
        _require(self.weight >= 0, f"a level's weight is {self.weight}; it must be >= 0")
        for name in ("base_first", "base_later", "guide", "yes_if_right", "yes_if_wrong"):
            value = getattr(self, name)
            _require(0 <= value <= 1, f"a level's {name} is {value}; it must be in [0, 1]")


@dataclass(frozen=True)
class Uncertainty:
    """How much the guide's uncertainty says about its answer: a few bins of a real number."""

    bins: int = 3
    noise: float = 0.5
    """Ratio of neighbouring bins' probabilities, in (0, 1]: 1 says nothing, near 0 says all."""

    def __post_init__(self) -> None:
        _require(self.bins >= 1, f"{self.bins} uncertainty bins; there must be at least 1")
        _require(0 < self.noise <= 1, f"uncertainty noise is {self.noise}; it must be in (0, 1]")

    @property
    def if_right(self) -> NDArray[np.float64]:
        """[bins] probability of each bin when the guide's answer is right.

        >>> Uncertainty(bins=2, noise=0.25).if_right
        array([0.8, 0.2])
        """
        falling: NDArray[np.float64] = self.noise ** np.arange(self.bins, dtype=np.float64)
        shares: NDArray[np.float64] = falling / falling.sum()
        return shares

    @property
    def if_wrong(self) -> NDArray[np.float64]:
        """[bins] probability of each bin when the guide's answer is wrong: the mirror image."""
        return self.if_right[::-1]


@dataclass(frozen=True)
class CallPrice:
    """What one agent's call takes: tokens, and nano-dollars for each of them."""

    input_tokens: int
    """Mean number of input tokens in round 1."""
    output_tokens: int
    input_nano: int
    """Price of an input token, in nano-dollars."""
    output_nano: int
    """Price of an output token, in nano-dollars."""
    growth: int = 0
    """Input tokens that each later round adds: the conversation so far."""
    spread: int = 0
    """Input tokens vary evenly by at most this many, whatever else happens."""

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            _require(value >= 0, f"a call's {name} is {value}; it must be >= 0")
        _require(self.spread <= self.input_tokens, "a call's spread exceeds its input_tokens")

    def mean_nano(self, rounds: int) -> IntArray:
        """Return the exact mean price of the call in rounds 1..T, [T] in nano-dollars.

        >>> CallPrice(90, 1, input_nano=2_500, output_nano=10_000, growth=10).mean_nano(3)
        array([235000, 260000, 285000])
        """
        tokens = self.input_tokens + self.growth * np.arange(rounds, dtype=np.int64)
        return tokens * self.input_nano + self.output_tokens * self.output_nano


@dataclass(frozen=True)
class GeneratorConfig:
    """Everything that the generator's questions depend on."""

    levels: tuple[Level, ...]
    base_call: CallPrice
    guide_call: CallPrice
    rounds: int = 4
    """The horizon T, 1..16."""
    wrong_answers: int = 20
    """W, the number of distinct wrong answers, equally likely (3 for four choices)."""
    base_persistence: float = 0.5
    """P(the base repeats its previous answer); otherwise it answers afresh."""
    guide_persistence: float = 0.5
    """P(the guide repeats its previous answer) when it rejects the base's and differs from it."""
    uncertainty: Uncertainty = Uncertainty()

    def __post_init__(self) -> None:
        _require(
            1 <= self.rounds <= MAX_ROUNDS, f"{self.rounds} rounds; there may be 1 to {MAX_ROUNDS}"
        )
        _require(
            self.wrong_answers >= 2, f"{self.wrong_answers} wrong answers; there must be at least 2"
        )
        _require(sum(level.weight for level in self.levels) > 0, "no level has any weight")
        for name in ("base_persistence", "guide_persistence"):
            value = getattr(self, name)
            _require(0 <= value <= 1, f"{name} is {value}; it must be in [0, 1]")
        _require(self.round_cost_nano.min() > 0, "a round costs nothing; give tokens and prices")

    @property
    def mix(self) -> NDArray[np.float64]:
        """[levels] share of the questions at each level."""
        weights = self.per_level("weight")
        shares: NDArray[np.float64] = weights / weights.sum()
        return shares

    @property
    def round_cost_nano(self) -> IntArray:
        """[T] exact mean price of each round, in nano-dollars."""
        return self.base_call.mean_nano(self.rounds) + self.guide_call.mean_nano(self.rounds)

    def per_level(self, name: str) -> NDArray[np.float64]:
        """Return one field of every level, [levels]."""
        return np.array([getattr(level, name) for level in self.levels])


def degrade_guide(config: GeneratorConfig, factor: float) -> GeneratorConfig:
    """Return the same questions with a worse guide.

    Its skill is multiplied by `factor`, and so is the distance between its two rates of saying yes,
    whose middle stays: at 0 its verdict is blind and its own answers are never right.

    >>> level = Level(1.0, 0.3, 0.3, guide=0.8, yes_if_right=0.9, yes_if_wrong=0.1)
    >>> price = CallPrice(1, 1, 1, 1)
    >>> worse = degrade_guide(GeneratorConfig((level,), price, price), 0.5).levels[0]
    >>> round(worse.guide, 6), round(worse.yes_if_right, 6), round(worse.yes_if_wrong, 6)
    (0.4, 0.7, 0.3)
    """
    _require(0 <= factor <= 1, f"the guide is degraded by {factor}; it must be in [0, 1]")

    def worse(level: Level) -> Level:
        middle = (level.yes_if_right + level.yes_if_wrong) / 2
        half = factor * (level.yes_if_right - level.yes_if_wrong) / 2
        return replace(
            level,
            guide=factor * level.guide,
            yes_if_right=middle + half,
            yes_if_wrong=middle - half,
        )

    return replace(config, levels=tuple(worse(level) for level in config.levels))


def shift_mix(config: GeneratorConfig, weights: tuple[float, ...]) -> GeneratorConfig:
    """Return the same levels of difficulty with other weights.

    Raises:
        InputError: there are more or fewer weights than levels.
    """
    _require(
        len(weights) == len(config.levels),
        f"{len(weights)} weights for {len(config.levels)} levels; give one a level",
    )
    shifted = (replace(x, weight=w) for x, w in zip(config.levels, weights, strict=True))
    return replace(config, levels=tuple(shifted))


def generate(config: GeneratorConfig, n: int, rng: np.random.Generator) -> TraceArrays:
    """Draw `n` questions with all their rounds, [n, T, 2] for base and guide.

    Ids read `generated-000001`, the models `generator-base` and `generator-guide`; difficulty is
    hidden. Signals: the guide's verdict and uncertainty, and both agents' tokens. The price of a
    call is exactly its tokens times their prices, and says nothing about the answers.
    """
    answers = _draw_answers(config, n, rng)
    shape = answers.shape
    tokens = _draw_tokens(config, n, rng)
    prices = [(c.input_nano, c.output_nano) for c in (config.base_call, config.guide_call)]
    agrees = answers[:, :, 0] == answers[:, :, 1]
    return TraceArrays(
        ids=np.array([f"generated-{i + 1:06d}" for i in range(n)], dtype=np.str_),
        roles=("base", "guide"),
        models=MODELS,
        answer=first_appearance(answers).astype(np.int16),
        correct=answers == RIGHT,
        cost_nano=(tokens * np.array(prices)).sum(axis=3),
        signals={
            "verdict": _guide_only(agrees),
            "uncertainty": _guide_only(_draw_uncertainty(config, answers[:, :, 1] == RIGHT, rng)),
            "input_tokens": tokens[:, :, :, 0].astype(np.float32),
            "output_tokens": tokens[:, :, :, 1].astype(np.float32),
        },
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.full(n, NO_SPLIT, dtype=np.int8),
        recorded=np.full(n, shape[1], dtype=np.int16),
        independent=np.zeros(n, dtype=bool),
    )


def first_appearance(codes: NDArray[np.int64]) -> Codes:
    """Name the answers of each question 0, 1, 2, ... in the order in which they appear.

    Args:
        codes: [n, T, L] any codes of answers, read round by round and role by role.

    >>> first_appearance(np.array([[[7, 7], [3, 7]]]))
    array([[[0, 0],
            [1, 0]]])
    """
    flat = codes.reshape(len(codes), -1)
    named = np.zeros_like(flat)
    seen = np.ones(len(flat), dtype=np.int64)
    for j in range(1, flat.shape[1]):
        same = flat[:, :j] == flat[:, j : j + 1]
        old = same.any(axis=1)
        earlier = np.take_along_axis(named, same.argmax(axis=1)[:, None], axis=1)[:, 0]
        named[:, j] = np.where(old, earlier, seen)
        seen += ~old
    return named.reshape(codes.shape)


def uncertainty_bin(config: GeneratorConfig, uncertainty: Signal) -> Codes:
    """Return the bin that each recorded uncertainty was drawn in, in the same shape."""
    bins: Codes = (uncertainty / LARGEST_ENTROPY * config.uncertainty.bins).astype(np.int64)
    return bins


def _draw_answers(config: GeneratorConfig, n: int, rng: np.random.Generator) -> Codes:
    """Return [n, T, 2] hidden codes of the answers of base and guide."""
    level = rng.choice(len(config.levels), size=n, p=config.mix)
    base = guide = np.full(n, NOBODY)
    rounds = []
    for t in range(config.rounds):
        base = _draw_base(config, level, base, t, rng)
        guide = _draw_guide(config, level, base, guide, rng)
        rounds.append(np.stack([base, guide], axis=1))
    return np.stack(rounds, axis=1)


def _draw_base(
    config: GeneratorConfig, level: Codes, previous: Codes, t: int, rng: np.random.Generator
) -> Codes:
    skill = config.per_level("base_later" if t else "base_first")[level]
    wrong = rng.integers(1, config.wrong_answers + 1, size=len(level))
    fresh = np.where(rng.random(len(level)) < skill, RIGHT, wrong)
    repeats = (rng.random(len(level)) < config.base_persistence) & (previous != NOBODY)
    return np.where(repeats, previous, fresh)


def _draw_guide(
    config: GeneratorConfig, level: Codes, base: Codes, previous: Codes, rng: np.random.Generator
) -> Codes:
    """Say yes and take the base's answer over, or no and give any other one."""
    n, base_right = len(level), base == RIGHT
    says_yes = np.where(
        base_right, config.per_level("yes_if_right")[level], config.per_level("yes_if_wrong")[level]
    )
    yes = rng.random(n) < says_yes
    any_wrong = rng.integers(1, config.wrong_answers + 1, size=n)
    other_wrong = rng.integers(1, config.wrong_answers, size=n)
    other_wrong += other_wrong >= base
    right = rng.random(n) < config.per_level("guide")[level]
    fresh = np.where(base_right, any_wrong, np.where(right, RIGHT, other_wrong))
    repeats = (rng.random(n) < config.guide_persistence) & (previous != NOBODY) & (previous != base)
    return np.where(yes, base, np.where(repeats, previous, fresh))


def _draw_uncertainty(
    config: GeneratorConfig, right: BoolArray, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return [n, T] a number in the bin drawn, off its edges so that rounding cannot move it."""
    bins = config.uncertainty.bins
    draw = rng.random(right.shape)
    bin_if_right = np.searchsorted(config.uncertainty.if_right.cumsum()[:-1], draw, side="right")
    bin_if_wrong = np.searchsorted(config.uncertainty.if_wrong.cumsum()[:-1], draw, side="right")
    inside = rng.uniform(0.01, 0.99, size=right.shape)
    return (np.where(right, bin_if_right, bin_if_wrong) + inside) / bins * LARGEST_ENTROPY


def _draw_tokens(config: GeneratorConfig, n: int, rng: np.random.Generator) -> IntArray:
    """Return [n, T, 2, 2] input and output tokens of base and guide."""
    tokens = np.empty((n, config.rounds, 2, 2), dtype=np.int64)
    for role, call in enumerate((config.base_call, config.guide_call)):
        varied = rng.integers(-call.spread, call.spread + 1, size=(n, config.rounds))
        grown = call.input_tokens + call.growth * np.arange(config.rounds)
        tokens[:, :, role, 0] = grown + varied
        tokens[:, :, role, 1] = call.output_tokens
    return tokens


def _guide_only(values: NDArray[np.float64] | BoolArray) -> Signal:
    """Return [n, T, 2] a signal that only the guide has."""
    signal = np.full((*values.shape, 2), np.nan, dtype=np.float32)
    signal[:, :, 1] = values
    return signal
