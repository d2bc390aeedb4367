"""What made-up questions depend on: how hard they are, how good both agents, and what calls cost.

`docs/research/generator.md` tells the story behind each number.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InputError
from farthing.traces.arrays import IntArray

MAX_ROUNDS = 16


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
    """Return the same levels of difficulty with other weights."""
    _require(
        len(weights) == len(config.levels),
        f"{len(weights)} weights for {len(config.levels)} levels; give one a level",
    )
    shifted = (replace(x, weight=w) for x, w in zip(config.levels, weights, strict=True))
    return replace(config, levels=tuple(shifted))
