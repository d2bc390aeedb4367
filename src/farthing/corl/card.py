"""A controller: a language model that answers by itself, or calls others in free text."""

from collections.abc import Sequence

from farthing.methods.base import Dataset, Method, Variant


def _live_only(_: Dataset) -> Sequence[Variant]:
    return [Variant(CORL.name, CORL.label, None, "what experts reply depends on what it writes")]


CORL = Method(
    name="corl",
    label="CORL",
    meaning="A controller LLM that answers itself or calls experts in text, under a budget mode",
    policy="farthing.corl.policy:ControllerPolicy",
    paper="2511.02755",
    action_spaces=("text",),
    replayable=False,
    extras=("lm",),
    calibration="none",
    variants=_live_only,
)
