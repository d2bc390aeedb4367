"""Made-up questions."""

import numpy as np

from farthing.api.arguments import text_of, whole_of
from farthing.api.questions import Traces
from farthing.methods.base import Dataset
from farthing_lab.generator.generate import generate as generate_questions
from farthing_lab.generator.presets import preset


def generate(name: str, n: int, *, seed: int = 0) -> Traces:
    """Make up questions of a preset, whose cheapest policy is known.

    Raises:
        UnknownNameError: there is no such preset.
        InputError: `n` is below 1.
    """
    config = preset(text_of(name, "the preset", "hotpotqa-llama2-7b")).config
    n, seed = whole_of(n, "the number of questions", 1), whole_of(seed, "seed", 0)
    questions = generate_questions(config, n, np.random.default_rng(seed))
    return Traces(Dataset(name, questions, config, name))
