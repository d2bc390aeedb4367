"""Where nothing cheaper is proved to be as good as a reference: ask the reference, for real."""

import msgspec
from msgspec import structs

from farthing.bundle.base import Bundle
from farthing.methods.baselines.models import AlwaysPolicy
from farthing.methods.cards import name_of
from farthing.promises.certificate import Certificate
from farthing.recommendation.played import QuestionPart
from farthing.traces.origin import origin_of
from farthing.traces.pool import is_pool


class NoFallback(msgspec.Struct, frozen=True):
    """Why no reference can answer in the policy's place."""

    why: str


def fallback(bundle: Bundle, certificate: Certificate, prove: QuestionPart) -> Bundle | NoFallback:
    """Return a bundle that asks the reference of an unproved promise for every question.

    Its certificate says that nothing was proved and that the reference answers; that needs no
    proof, and nothing is tested. The trained policy is kept inside, for the next calibration.

    Args:
        bundle: the trained policy, with what is known of the calibration questions.
        certificate: of a promise that was not proved.
        prove: the calibration questions.
    """
    promise, recorded = certificate.promise, prove.recorded
    role = promise.fallback
    if role is None:
        return NoFallback("this promise has no reference that could answer instead")
    if not is_pool(recorded):
        return NoFallback(f"in rounds nobody knows what {role} says where it is asked alone")
    if not recorded.independent.all():
        return NoFallback(f"{role} was not recorded alone")
    if certificate.question_budget_nano is not None:
        return NoFallback(f"a budget a question may not pay for {role}")
    policy = AlwaysPolicy(recorded.roles.index(role))
    before = bundle.origin
    origin = origin_of(recorded, before.fingerprint, before.system)
    return structs.replace(
        bundle,
        policy=policy,
        kind=name_of(policy),
        origin=structs.replace(
            origin, reference=before.reference, named=before.named, grade=before.grade
        ),
        kappa=certificate.kappa,
        certificate=certificate,
        empty="argmax",
        features=None,
    )
