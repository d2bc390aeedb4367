"""BoPO: at each step of a task a small or a large model, under a hard budget."""

from collections.abc import Sequence

from farthing.methods.base import Dataset, Method, Variant


def _by_steps_only(_: Dataset) -> Sequence[Variant]:
    note = "what a step finds depends on the steps before it: see `farthing study steps`"
    return [Variant(BOPO.name, BOPO.label, None, note)]


BOPO = Method(
    name="bopo",
    label="BoPO",
    meaning="A small or a large model at each step of a task, never over the task's budget",
    policy="farthing.methods.routers.bopo.policy:StepPolicy",
    paper="2602.21227",
    action_spaces=("steps",),
    replayable=False,
    calibration="none",
    variants=_by_steps_only,
    place=91,
)
