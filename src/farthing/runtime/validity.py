"""Why a bundle's promise does not hold: for any answer of these agents, or for one of them."""

from collections.abc import Sequence

from farthing.bundle.base import Bundle
from farthing.money import dollars
from farthing.process.budget import CASCADE
from farthing.promises.certificate import Certificate
from farthing.promises.kinds.groups import groups_of
from farthing.runtime.rounds import Plan
from farthing.runtime.steps import Lines
from farthing.traces.base import Call
from farthing.traces.system import Provenance, System, changes, uncompared, unrecorded
from farthing.traces.trace_kind import is_reply


def provenance_of(bundle: Bundle, lines: Lines, ours: System) -> Provenance:
    """Say whether these agents are asked as those in a bundle's traces; arguments as `of_all`."""
    if _other_system(bundle, lines, ours):
        return "changed"
    theirs = bundle.origin.system
    if theirs is None or unrecorded(theirs) or uncompared(_recorded(theirs, lines, ours), ours):
        return "unknown"
    return "same"


def of_all(bundle: Bundle, plan: Plan, lines: Lines, ours: System) -> tuple[str, ...]:
    """Say why the bundle's promise holds for no answer of these agents, a clause each.

    Args:
        bundle: the policy; one that knows only the names of its models is compared by these.
        plan: the agents.
        lines: whom of them the policy may ask.
        ours: role to who answers now.
    """
    found = [
        *_other_system(bundle, lines, ours),
        _other_protocol(bundle, plan),
        bundle.certificate.promise.caveat if bundle.certificate else None,
    ]
    return tuple(clause for clause in found if clause)


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


def _other_system(bundle: Bundle, lines: Lines, ours: System) -> tuple[str, ...]:
    """Say what is not as it was in the traces that the bundle's promise is about, a clause each.

    Args:
        bundle: the policy; one that knows only the names of its models is compared by these.
        lines: whom the policy may ask.
        ours: role to who answers now.
    """
    theirs = bundle.origin.system
    if theirs is None:
        other = _other_models(bundle, lines)
        return () if other is None else (other,)
    recorded = _recorded(theirs, lines, ours)
    asked = {role: ours[role] for role in _roles(lines) if role in ours}
    found = changes(recorded, asked)
    return tuple(f"{what} is not that of the bundle's traces" for what in found)


def _roles(lines: Lines) -> list[str]:
    """Return the roles that a policy may ask, each once."""
    asked = (agent.role for line in lines for step in line for agent in step.agents)
    return list(dict.fromkeys(asked))


def _recorded(theirs: System, lines: Lines, ours: System) -> System:
    """Return who answered in the bundle's traces, by the roles that the policy may ask now."""
    return {
        role: theirs[recorded]
        for role in _roles(lines)
        if (recorded := _recorded_as(role, theirs, ours)) in theirs
    }


def _recorded_as(role: str, theirs: System, ours: System) -> str:
    """Return a role's name in the bundle's traces, where a pool may have called it otherwise."""
    if role in theirs or role not in ours:
        return role
    return next((name for name, part in theirs.items() if part.model == ours[role].model), role)


def _other_models(bundle: Bundle, lines: Lines) -> str | None:
    """Say which models the bundle was made for, where these are others; None where they are not."""
    if bundle.origin.roles == CASCADE:
        line = bundle.origin.models[0].split(" -> ")
        models = [name if name in bundle.origin.named else "" for name in line]
        ours = [step.agents[0].model.name for line in lines for step in line]
    else:
        agents = {agent.role: agent for line in lines for agent in line[0].agents}
        models = list(bundle.origin.models)
        ours = [agents[role].model.name for role in bundle.origin.roles]
    if all(theirs in {"", mine} for theirs, mine in zip(models, ours, strict=True)):
        return None
    theirs = " and ".join(model or "any" for model in models)
    return f"the bundle was made for the models {theirs}, and these are {' and '.join(ours)}"


def _other_protocol(bundle: Bundle, plan: Plan) -> str | None:
    """Say that calls see one another here and not in the bundle's traces, or the reverse."""
    if bundle.origin.independent in {None, plan.independent}:
        return None
    if plan.independent:
        return "the bundle was made for calls that see one another, and these do not"
    return "the bundle was made for calls that see nothing of one another, and these do"
