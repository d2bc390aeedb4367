"""ODAR: how hard a question looks decides between one call, two, and six."""

from collections.abc import Callable, Sequence

from farthing.methods.base import Dataset, Method, Variant, load


def _where_independent(name: str, label: str, learner: str) -> Callable[[Dataset], list[Variant]]:
    """Return who takes part: nobody where calls saw each other, since then none can be skipped."""

    def variants(dataset: Dataset) -> list[Variant]:
        if not dataset.traces.independent.all():
            note = "calls saw earlier ones, so none can be skipped"
            return [Variant(name, label, None, note)]
        return [Variant(name, label, load(learner))]

    return variants


def _card(name: str, label: str, meaning: str, learner: str, place: int) -> Method:
    at = f"farthing.methods.routers.odar.learner:{learner}"
    takes_part: Callable[[Dataset], Sequence[Variant]] = _where_independent(name, label, at)
    return Method(
        name=name,
        label=label,
        meaning=meaning,
        paper="2602.23681",
        policy="farthing.methods.routers.odar.policy:OdarPolicy",
        learner=at,
        action_spaces=("calls",),
        needs=("independent calls",),
        extras=("train",),
        varies_with=frozenset({"seed"}),
        variants=takes_part,
        place=place,
    )


ODAR = _card(
    "odar",
    "ODAR",
    "How hard a question looks decides between one call, a second that checks it, and six",
    "ODAR",
    73,
)
ODAR_RECHECK = _card(
    "odar-recheck",
    "ODAR, looking again",
    "As odar, but how hard a question is, is estimated anew once the check has answered",
    "ODAR_RECHECK",
    74,
)
