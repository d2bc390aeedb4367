"""Who takes part in a comparison: methods that can win on these questions, all, or those named."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

from farthing import plugins
from farthing.errors import InputError, MissingExtraError, UnknownNameError
from farthing.methods.base import Dataset, Gives, Learner, Method, Variant
from farthing.methods.cards import cards
from farthing.recommendation.base import Candidate

ALONE = "always"
"""The method that any other is held against: one model alone."""
OUT_OF_TURN = "the cuts of a thought are reached in turn, and it asks in any order"
NO_CUTS = "it stops a thought, and these traces hold no cuts of one"
"""Why a method takes no part where its action spaces are not those of the questions."""


def candidates(dataset: Dataset, names: Iterable[str] | None = None) -> list[Candidate]:
    """Return the candidates of these names, or all that can run here, without doubles.

    A name is one of a candidate (`fixed-2`) or of a method (`fixed`: all depths). Called by name,
    one for which nothing was recorded is returned too, and its note says so.
    """
    if names is None:
        return [candidate for candidate in _everyone(dataset) if candidate.learner is not None]
    chosen: dict[str, Candidate] = {}
    for name in names:
        for candidate in _called(name, dataset):
            chosen.setdefault(candidate.name, candidate)
    if dataset.features and not any(map(reads_features, chosen.values())):
        asked = f"{', '.join(chosen)} read no features of their own choice"
        raise InputError(f"{asked}: leave {', '.join(dataset.features)} out")
    return list(chosen.values())


def default_candidates(dataset: Dataset, gives: Gives) -> list[Candidate]:
    """Return the candidates that are tried for such a promise by their cards, if they can run.

    Of a pool, a single answer is tried by methods of pools alone; sets also by those that ask its
    models one after another. Where no pool was recorded, methods of pools are out. Of the cuts of a
    thought those take part that go on from cut to cut, or that stop at the same one for all.

    Args:
        dataset: the questions.
        gives: what is promised: a single answer, or a set of them.
    """
    return [
        one for card in tried_for(dataset, gives) for one in _built(card, dataset) if one.learner
    ]


def tried_for(dataset: Dataset, gives: Gives) -> list[Method]:
    """Return the cards of methods that are tried for such a promise on such questions."""
    models = dataset.is_pool and not dataset.traces.cuts
    thought = "cuts" if gives == "one" else "rounds"
    return [
        card
        for card in cards()
        if gives in card.tried_for
        and _fits(card, dataset)
        and (not models or card.space == "pool" or gives == "set")
        and (not dataset.traces.cuts or thought in card.action_spaces)
    ]


def beside_each_alone(dataset: Dataset, gives: Gives) -> list[Candidate]:
    """Return who can win and, in the order of the table, each model alone that was recorded so."""
    found = default_candidates(dataset, gives)
    if all(one.method.name != ALONE for one in found):
        found += [one for one in _called(ALONE, dataset) if one.learner]
    return sorted(found, key=lambda one: (one.method.place, one.method.name))


def with_reference_model(candidate: Candidate, reference: str | None) -> Candidate:
    """Return a candidate whose rows of models, if it asks any, end in the reference."""
    learner: Any = candidate.learner
    if reference is None or not hasattr(learner, "strong"):
        return candidate
    return candidate.learning_by(replace(learner, strong=reference))


def single_candidate(dataset: Dataset, name: str) -> tuple[Candidate, Learner]:
    """Return the one candidate of a name, and what trains it."""
    found = candidates(dataset, [name])
    if len(found) != 1:
        names = ", ".join(candidate.name for candidate in found) or "none that can run here"
        raise InputError(f"name one policy: {names}")
    (candidate,) = found
    if candidate.learner is None:
        raise InputError(f"the policy '{candidate.name}' cannot run: {candidate.note}")
    return candidate, candidate.learner


def unavailable(dataset: Dataset) -> dict[str, list[str]]:
    """Return who cannot run here and takes part only by name: why, and the names it is true of."""
    found: dict[str, list[str]] = {}
    for candidate in _everyone(dataset):
        if candidate.learner is None:
            found.setdefault(candidate.note, []).append(candidate.name)
    return found


def _everyone(dataset: Dataset) -> list[Candidate]:
    fitting = [method for method in cards() if _fits(method, dataset)]
    return [candidate for method in fitting for candidate in _built(method, dataset)]


def _fits(method: Method, dataset: Dataset) -> bool:
    spaces = set(method.action_spaces)
    if dataset.traces.cuts:
        return bool(spaces & {"rounds", "cuts"})
    return bool(spaces - {"cuts"} if dataset.is_pool else spaces - {"cuts", "pool"})


def _called(name: str, dataset: Dataset) -> list[Candidate]:
    registered = {method.name: method for method in cards()}
    if name in registered:
        return _built(registered[name], dataset)
    families = [family for family in registered if name.startswith(f"{family}-")]
    relatives = _built(registered[max(families, key=len)], dataset) if families else []
    found = [candidate for candidate in relatives if candidate.name == name]
    if not found:
        known = {*registered, *(candidate.name for candidate in relatives)}
        known -= {"optimum"} if dataset.generator is None else set()
        raise UnknownNameError("policy", name, known, plugins.more_names())
    return found


def _built(method: Method, dataset: Dataset) -> list[Candidate]:
    if (dataset.traces.cuts or method.space == "cuts") and not _fits(method, dataset):
        why = OUT_OF_TURN if dataset.traces.cuts else NO_CUTS
        return [Candidate(method, Variant(method.name, method.label, None, why))]
    try:
        variants = method.on(dataset)
    except ModuleNotFoundError as missing:
        what = f"the policy '{method.name}' ({missing.name})"
        package = plugins.package_of("methods", method.name) or "farthing"
        raise MissingExtraError(
            what, method.extras[0] if method.extras else "lm", package
        ) from None
    found = [Candidate(method, each) for each in variants]
    return [_with_features(candidate, dataset.features) for candidate in found]


def reads_features(candidate: Candidate) -> bool:
    """Return whether a candidate can be told which recorded numbers to see."""
    return hasattr(candidate.learner, "extra_features")


def _with_features(candidate: Candidate, names: tuple[str, ...]) -> Candidate:
    learner: Any = candidate.learner
    if not names or not reads_features(candidate):
        return candidate
    return candidate.learning_by(_asking_for(learner, names))


@cache
def _asking_for(learner: Any, names: tuple[str, ...]) -> Any:
    """Return a learner that reads these features too; the same one for the same learner."""
    return replace(learner, extra_features=names)
