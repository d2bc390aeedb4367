"""Generator settings fitted to what the paper publishes: made up, and labelled so.

`benchmarks/fit_presets.py` fits them; `docs/research/generator.md` lays the fit beside the
published rows.
"""

from dataclasses import dataclass

from farthing.errors import UnknownNameError
from farthing_lab.generator.config import CallPrice, GeneratorConfig, Level, Uncertainty


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

    >>> preset("mmlu-llama2-7b").train
    560
    """
    if name not in PRESETS:
        raise UnknownNameError("preset", name, PRESETS)
    return PRESETS[name]


def _config(
    levels: tuple[Level, ...],
    calls: tuple[CallPrice, CallPrice],
    *,
    wrong_answers: int,
    persistence: tuple[float, float],
    noise: float,
) -> GeneratorConfig:
    """Assemble a setting of four rounds; calls and persistence are base's and guide's."""
    return GeneratorConfig(
        levels=levels,
        base_call=calls[0],
        guide_call=calls[1],
        wrong_answers=wrong_answers,
        base_persistence=persistence[0],
        guide_persistence=persistence[1],
        uncertainty=Uncertainty(bins=3, noise=noise),
    )


# The paper does not say what its base costs; a twentieth of the round is this project's guess, and
# only the sum of both calls is fitted. The guide is priced at GPT-4o's 2.50 and 10 USD a million.
_HOTPOTQA_BASE = CallPrice(60, 60, input_nano=100, output_nano=100, spread=20)
_MMLU_BASE = CallPrice(90, 90, input_nano=100, output_nano=100, spread=30)


def _gpt_4o(input_tokens: int, growth: int, spread: int) -> CallPrice:
    return CallPrice(
        input_tokens, 1, input_nano=2_500, output_nano=10_000, growth=growth, spread=spread
    )


_HOTPOTQA_LLAMA2 = _config(
    (
        Level(0.560, 0.337, 0.337, 0.929, yes_if_right=0.95, yes_if_wrong=0.036),
        Level(0.305, 0.143, 0.143, 0.727, yes_if_right=0.85, yes_if_wrong=0.111),
        Level(0.135, 0.047, 0.047, 0.433, yes_if_right=0.70, yes_if_wrong=0.233),
    ),
    (_HOTPOTQA_BASE, _gpt_4o(85, growth=0, spread=25)),
    wrong_answers=20,
    persistence=(0.417, 0.629),
    noise=0.634,
)
_HOTPOTQA_LLAMA32 = _config(
    (
        Level(0.576, 0.436, 0.436, 0.916, yes_if_right=0.95, yes_if_wrong=0.032),
        Level(0.314, 0.202, 0.202, 0.689, yes_if_right=0.85, yes_if_wrong=0.099),
        Level(0.110, 0.070, 0.070, 0.388, yes_if_right=0.70, yes_if_wrong=0.211),
    ),
    (_HOTPOTQA_BASE, _gpt_4o(80, growth=0, spread=25)),
    wrong_answers=20,
    persistence=(0.494, 0.558),
    noise=0.647,
)
_MMLU_LLAMA2 = _config(
    (
        Level(0.554, 0.143, 0.143, 0.961, yes_if_right=0.95, yes_if_wrong=0.014),
        Level(0.231, 0.115, 0.115, 0.756, yes_if_right=0.85, yes_if_wrong=0.044),
        Level(0.215, 0.064, 0.064, 0.408, yes_if_right=0.70, yes_if_wrong=0.101),
    ),
    (_MMLU_BASE, _gpt_4o(142, growth=9, spread=40)),
    wrong_answers=3,
    persistence=(0.293, 0.852),
    noise=0.27,
)
_MMLU_LLAMA32 = _config(
    (
        Level(0.448, 0.174, 0.174, 0.908, yes_if_right=0.95, yes_if_wrong=0.016),
        Level(0.187, 0.140, 0.140, 0.552, yes_if_right=0.85, yes_if_wrong=0.051),
        Level(0.365, 0.080, 0.080, 0.215, yes_if_right=0.70, yes_if_wrong=0.114),
    ),
    (_MMLU_BASE, _gpt_4o(139, growth=32, spread=40)),
    wrong_answers=3,
    persistence=(0.428, 0.864),
    noise=0.344,
)

PRESETS: dict[str, Preset] = {
    "hotpotqa-llama2-7b": Preset(_HOTPOTQA_LLAMA2, "hotpotqa", "llama-2-7b", train=1_000),
    "hotpotqa-llama3.2-3b": Preset(_HOTPOTQA_LLAMA32, "hotpotqa", "llama-3.2-3b", train=1_000),
    "mmlu-llama2-7b": Preset(_MMLU_LLAMA2, "mmlu", "llama-2-7b", train=560),
    "mmlu-llama3.2-3b": Preset(_MMLU_LLAMA32, "mmlu", "llama-3.2-3b", train=560),
}
"""Every preset by name."""
