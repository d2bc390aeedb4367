"""What the generator draws, as ordinary records: to be exported, imported and stored like any."""

import numpy as np

from farthing.money import usd_from_nano
from farthing.process.generator.config import GeneratorConfig
from farthing.process.generator.generate import generate
from farthing.traces.arrays import TraceArrays
from farthing.traces.base import Call, Trace


def generate_traces(config: GeneratorConfig, n: int, rng: np.random.Generator) -> list[Trace]:
    """Draw `n` questions as records; the same `rng` gives the questions of `generate`.

    Every call carries `correct`; answers read `candidate 1`, `candidate 2`, ... in the order in
    which a question brings them up, so that their text tells nothing. Questions have no text:
    nobody was asked.
    """
    arrays = generate(config, n, rng)
    return [
        Trace(
            id=str(arrays.ids[i]),
            calls=[_call(arrays, i, t, role) for t in range(arrays.horizon) for role in range(2)],
        )
        for i in range(n)
    ]


def _call(arrays: TraceArrays, i: int, t: int, role: int) -> Call:
    def signal(name: str) -> float:
        return float(arrays.signals[name][i, t, role])

    is_guide = arrays.roles[role] == "guide"
    return Call(
        round=t + 1,
        role=arrays.roles[role],
        model=arrays.models[role],
        answer=f"candidate {arrays.answer[i, t, role] + 1}",
        correct=bool(arrays.correct[i, t, role]),
        verdict=bool(signal("verdict")) if is_guide else None,
        uncertainty=signal("uncertainty") if is_guide else None,
        input_tokens=int(signal("input_tokens")),
        output_tokens=int(signal("output_tokens")),
        cost_usd=usd_from_nano(int(arrays.cost_nano[i, t, role])),
    )
