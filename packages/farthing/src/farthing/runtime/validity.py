"""Why a bundle's promise does not hold: for any answer of these agents, or for one of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from farthing.bundle.base import Bundle
from farthing.models.base import Usage
from farthing.models.prices import SecondPrice
from farthing.money import dollars
from farthing.process.budget import CASCADE
from farthing.promises.certificate import Certificate
from farthing.promises.kinds.groups import groups_of
from farthing.runtime.call_plan import CallPlan
from farthing.traces.base import Call
from farthing.traces.pool import THOUGHT, is_thought
from farthing.traces.system import Provenance, System, changes, uncompared, unrecorded
from farthing.traces.trace_kind import is_reply

FAR = 2
"""A price is another one from so many times what was recorded on, or that part of it."""


@dataclass(frozen=True)
class Validity:
    """Whether what a bundle promises can hold for answers of the agents that there are."""

    invalid_because: tuple[str, ...]
    """Why its certificate holds for none of them, a clause each; nothing where it may."""
    provenance: Provenance
    """Whether these agents are asked as those in the bundle's traces were."""


def validity_of(plan: CallPlan, ours: System) -> Validity:
    """Say whether a bundle's promise can hold for answers of these agents, role to who answers now.

    A bundle that knows only the names of its models is compared by these.
    """
    changed = (*_other_system(plan, ours), *_other_prices(plan))
    theirs, certificate = plan.bundle.origin.system, plan.bundle.certificate
    caveat = certificate.promise.caveat if certificate else None
    provenance: Provenance = "same"
    if changed:
        provenance = "changed"
    elif theirs is None or unrecorded(theirs) or uncompared(_recorded(theirs, plan, ours), ours):
        provenance = "unknown"
    clauses = (*changed, _other_protocol(plan), caveat)
    return Validity(tuple(clause for clause in clauses if clause), provenance)


def other_budget(certificate: Certificate | None, budget_nano: int | None) -> str | None:
    """Say that a question was answered under another budget than its promise is about."""
    under = certificate.question_budget_nano if certificate else None
    if under is None or under == budget_nano:
        return None
    ours = "none" if budget_nano is None else dollars(budget_nano)
    return (
        f"the promise holds under a budget of {dollars(under)} a question, and this one had {ours}"
    )


def other_group(certificate: Certificate | None, group: str | None) -> str | None:
    """Say that a question is of a group that its promise, one per group, does not know."""
    groups = groups_of(certificate)
    if not groups or group in groups:
        return None
    return f"the question's group, {group or 'none'}, was not calibrated"


def unread_group(bundle: Bundle, group: str | None) -> str | None:
    """Say that a policy decides by a question's group, and did not learn from any of this one."""
    known: tuple[str, ...] = getattr(bundle.policy, "groups", ())
    if not known or group in known:
        return None
    return f"the policy decides by a question's group, and did not learn of {group or 'none'}"


def unsaid(bundle: Bundle, calls: Sequence[Call]) -> list[str]:
    """Say which numbers the policy decides by came with every recorded answer, and not here."""
    found = []
    for name in filter(bundle.reads, bundle.origin.always):
        silent = {c.role for c in calls if c.answer and getattr(c, name) is None}
        silent = {role for role in silent if not is_reply(role)}
        if silent:
            who = ", ".join(sorted(silent))
            found.append(f"the policy decides by the {name} of answers, and {who} gave none")
    return found


def _other_system(plan: CallPlan, ours: System) -> tuple[str, ...]:
    theirs = plan.bundle.origin.system
    if theirs is None:
        other = _other_models(plan)
        return () if other is None else (other,)
    asked = {role: ours[role] for role in _asked(plan) if role in ours}
    differences = changes(_recorded(theirs, plan, ours), asked)
    return tuple(f"{what} is not that of the bundle's traces" for what in differences)


def _other_prices(plan: CallPlan) -> Iterator[str]:
    """Say which model costs far from what was recorded, whatever of its input is in a cache."""
    agents = {agent.role: agent for line in plan.lines for step in line for agent in step.agents}
    for role, agent in agents.items():
        usual = plan.bundle.origin.usual or {}
        price, was = getattr(agent.model, "price", None), usual.get(role)
        if was is None or price is None or isinstance(price, SecondPrice):
            continue
        used = Usage(was.input_tokens, was.output_tokens)
        most = price.cost_nano(used, 0.0)
        least = price.cost_nano(replace(used, cached_tokens=was.input_tokens), 0.0)
        if was.cost_nano > FAR * most or least > FAR * was.cost_nano:
            yield (
                f"a call of {role} cost {dollars(was.cost_nano)} in the bundle's traces, and at "
                f"the price of now it costs {dollars(most)}"
            )


def _recorded(theirs: System, plan: CallPlan, ours: System) -> System:
    return {
        role: theirs[recorded]
        for role in _asked(plan)
        if (recorded := _recorded_as(role, theirs, ours)) in theirs
    }


def _asked(plan: CallPlan) -> Sequence[str]:
    """Return the roles that a policy may ask, as a job has them: one thinks up to all cuts."""
    return THOUGHT if is_thought(plan.roles) else plan.roles


def _recorded_as(role: str, theirs: System, ours: System) -> str:
    """Return a role's name in the bundle's traces, where a pool may have called it otherwise."""
    if role in theirs or role not in ours:
        return role
    return next((name for name, part in theirs.items() if part.model == ours[role].model), role)


def _other_models(plan: CallPlan) -> str | None:
    origin = plan.bundle.origin
    if origin.roles == CASCADE:
        line = origin.models[0].split(" -> ")
        models = [name if name in origin.named else "" for name in line]
        ours = [step.agents[0].model.name for line in plan.lines for step in line]
    else:
        agents = {agent.role: agent for line in plan.lines for agent in line[0].agents}
        models = list(origin.models)
        ours = [agents[role].model.name for role in origin.roles]
    if all(theirs in {"", mine} for theirs, mine in zip(models, ours, strict=True)):
        return None
    theirs = " and ".join(model or "any" for model in models)
    return f"the bundle was made for the models {theirs}, and these are {' and '.join(ours)}"


def _other_protocol(plan: CallPlan) -> str | None:
    """Say that calls see one another here and not in the bundle's traces, or the reverse."""
    if plan.bundle.origin.independent in {None, plan.independent}:
        return None
    if plan.independent:
        return "the bundle was made for calls that see one another, and these do not"
    return "the bundle was made for calls that see nothing of one another, and these do"
