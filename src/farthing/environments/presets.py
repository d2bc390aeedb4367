"""Generator settings fitted to what the paper publishes: made up, and labelled so.

`benchmarks/fit_presets.py` fits them; `docs/generator.md` lays the fit beside the published rows.
"""

from dataclasses import dataclass

from farthing.environments.generator import CallPrice, GeneratorConfig, Level, Uncertainty
from farthing.errors import UnknownNameError


@dataclass(frozen=True)
class Preset:
    """One pair of agents on one data set of the paper, as a generator."""

    config: GeneratorConfig
    dataset: str
    """The data set's name in the paper's tables."""
    base_model: str
    """The base model's name in the paper's tables; the guide is GPT-4o throughout."""
    train: int
    """Number of training questions in the paper."""
    calibrate: int = 200
    test: int = 200


def preset(name: str) -> Preset:
    """Return a preset by name.

    Raises:
        UnknownNameError: there is no such preset; the message lists those there are.

    >>> preset("mmlu-llama2-7b").train
    560
    """
    if name not in PRESETS:
        raise UnknownNameError("preset", name, PRESETS)
    return PRESETS[name]


_HOTPOTQA_BASE = CallPrice(60, 60, input_nano=100, output_nano=100, spread=20)
_HOTPOTQA_GUIDE = CallPrice(85, 1, input_nano=2_500, output_nano=10_000, spread=25)
_MMLU_BASE = CallPrice(90, 90, input_nano=100, output_nano=100, spread=30)
_MMLU_GUIDE = CallPrice(141, 1, input_nano=2_500, output_nano=10_000, growth=20, spread=40)

_HOTPOTQA = GeneratorConfig(
    levels=(
        Level(0.5, 0.45, 0.45, 0.90, 0.95, 0.05),
        Level(0.35, 0.20, 0.20, 0.65, 0.85, 0.20),
        Level(0.15, 0.05, 0.05, 0.35, 0.70, 0.35),
    ),
    base_call=_HOTPOTQA_BASE,
    guide_call=_HOTPOTQA_GUIDE,
    wrong_answers=20,
    base_persistence=0.4,
    guide_persistence=0.5,
    uncertainty=Uncertainty(bins=3, noise=0.35),
)
_MMLU = GeneratorConfig(
    levels=(
        Level(0.6, 0.35, 0.35, 0.95, 0.95, 0.05),
        Level(0.25, 0.25, 0.25, 0.70, 0.85, 0.20),
        Level(0.15, 0.15, 0.15, 0.35, 0.70, 0.40),
    ),
    base_call=_MMLU_BASE,
    guide_call=_MMLU_GUIDE,
    wrong_answers=3,
    base_persistence=0.4,
    guide_persistence=0.6,
    uncertainty=Uncertainty(bins=3, noise=0.35),
)

PRESETS: dict[str, Preset] = {
    "hotpotqa-llama2-7b": Preset(_HOTPOTQA, "hotpotqa", "llama-2-7b", train=1_000),
    "hotpotqa-llama3.2-3b": Preset(_HOTPOTQA, "hotpotqa", "llama-3.2-3b", train=1_000),
    "mmlu-llama2-7b": Preset(_MMLU, "mmlu", "llama-2-7b", train=560),
    "mmlu-llama3.2-3b": Preset(_MMLU, "mmlu", "llama-3.2-3b", train=560),
}
"""Every preset by name."""
