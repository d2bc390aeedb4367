"""The records of calibration: a threshold, and the certificate that says what it promises."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from farthing.errors import CalibrationError, MissingPackageError, UnknownNameError
from farthing.promises.levels import Margin, exact_level, exact_margin, exact_text, usd
from farthing.promises.payload import Payload

if TYPE_CHECKING:
    from farthing.promises.base import Promise
    from farthing.promises.chains import Chain

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

Population = Literal["all", "solvable"]
"""Whether a promise is about every question (unsolvable ones count as covered) or the solvable."""

GROUP = "farthing.guarantees"
"""The entry points that guarantees are registered under, each a payload's class by its tag."""
OF_THE_LAB = frozenset({"online", "weighted"})
"""The kinds that `farthing-lab` registers."""


class Threshold(msgspec.Struct, frozen=True):
    """The k-th smallest of n critical thresholds."""

    kappa: float
    """The threshold; it acts as min(kappa, 1), and may be inf where most questions are unsolvable.
    0 means everything: every answer is returned."""
    k: int
    """Its rank; 0 where the questions are too few to promise anything tighter than everything."""
    n: int
    """Number of questions that it was taken from."""


AS_RECORDED = "Requests are made as the recorded ones were, whose "
"""Begins the condition that stands where nobody recorded how the questions were asked."""
LOOK = "It is look "
"""Begins what a certificate says where others were asked of the same questions before."""
JUDGED = "Right is what "
"""Begins the condition that stands where a model said what is right."""


class About(TypedDict):
    """What every kind of guarantee keeps of the evidence that it comes from."""

    fingerprint: str
    """SHA-256 of the traces."""
    question_budget_nano: int | None
    """The budget that each question was played under; None: without."""


class AskedOf(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of which questions a proof is, where some of those recorded lack calls that it needs."""

    models: tuple[str, ...]
    """The models that each question was asked; where the worst is taken, the reference alone."""
    questions: int
    """How many such questions there are."""
    recorded: int
    """Of how many."""
    missing: Literal["chance", "unknown", "worst"] | None = None
    """What was taken of the missing calls: that chance decided, nothing, the worst."""
    weighted: bool = False
    """Whether each question counts by the probability with which it was drawn."""

    def sentence(self, *, proved: bool = True) -> str:
        """Say for which questions a promise then holds, or of which none is proved.

        >>> some = AskedOf(models=("small", "large"), questions=1200, recorded=2000)
        >>> print(some.sentence())
        It is about questions like the 1,200 of the 2,000 recorded ones that were asked of both \
small and large.
        >>> print(some.sentence(proved=False))
        Nothing is proved of questions like the 1,200 of the 2,000 recorded ones that were asked \
of both small and large.
        """
        return f"{'It is about' if proved else 'Nothing is proved of'} {self._questions()}."

    def note(self) -> str:
        """Say the same of figures, as a note does.

        >>> print(AskedOf(models=("small",), questions=1200, recorded=2000).note())
        these figures are of questions like the 1,200 of the 2,000 recorded ones that were asked \
of small
        """
        return f"these figures are of {self._questions()}"

    def _questions(self) -> str:
        some = f"questions like the {self.questions:,} of the {self.recorded:,} recorded ones"
        if self.missing == "worst":
            return (
                f"{some} that were asked of {self.models[-1]}; where a call that was needed was "
                "not recorded, the answer counted as lost, at the price of the most expensive way"
            )
        both = "both " if len(self.models) == 2 else "all of " if len(self.models) > 2 else ""
        *others, last = self.models
        who = f"{', '.join(others)} and {last}" if others else last
        if self.weighted:
            return (
                f"questions like all {self.recorded:,} recorded ones: the {self.questions:,} that "
                f"were asked of {both}{who} count by the probability with which each was drawn"
            )
        return f"{some} that were asked of {both}{who}"

    def condition(self) -> str:
        """Say what must hold for a new question to be one of these."""
        if self.missing == "chance":
            return "Chance alone decided which questions lack calls."
        if self.missing == "worst":
            return "A new question is like those that the reference was asked."
        return (
            "A new question is like those that were asked of all of these models; why others were "
            "not is not recorded."
        )


class Certificate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is promised, on what evidence, and until when."""

    promise: Payload
    """What is promised, in the record of its kind."""
    kappa: float = 0.0
    """The threshold; it acts as min(kappa, 1). Per group: the smallest, safe in every group. For a
    row of one policy's thresholds: that of the operating point; for any other row 0. Where a
    reference answers in the policy's place: 1, at which it is asked and nobody else."""
    n: int = 0
    """Number of questions (online: of updates) that it was computed from, copies not counted."""
    requests: int | None = None
    """Number of requests, copies counted, that the n distinct questions stand for; None: n."""
    question_budget_nano: int | None = None
    """The budget a question, in nano-dollars, under which the promise was calibrated and under
    which alone it holds; None: without one."""
    conditional_on: tuple[str, ...] = ()
    """What must hold for the promise to be true, a sentence each."""
    invalid_when: tuple[str, ...] = ()
    """What ends it, a sentence each."""
    fingerprint: str = ""
    """SHA-256 of the traces that it was computed from."""
    asked_of: AskedOf | None = None
    """Which of the recorded questions it is about; None: all that were recorded in full."""

    def of_questions(self, asked_of: AskedOf | None) -> "Certificate":
        """Return the same certificate, which says which of the recorded questions it is about."""
        if asked_of is None:
            return self
        return msgspec.structs.replace(
            self,
            asked_of=asked_of,
            conditional_on=(*self.conditional_on, asked_of.condition()),
        )

    def among(self, chains: "Sequence[Chain]") -> "Certificate":
        """Return the same certificate of one of several candidates that were proved side by side.

        Args:
            chains: all of them; with fewer than two nothing changes.
        """
        if len(chains) < 2:
            return self
        from farthing.promises import wording  # noqa: PLC0415 - words are about certificates

        said = tuple(
            wording.SIDE_BY_SIDE if one == wording.HELD_OUT else one for one in self.conditional_on
        )
        promise = self.promise.among(chains)
        return msgspec.structs.replace(self, promise=promise, conditional_on=said)

    @property
    def per_request(self) -> bool:
        """Whether a question counts as often as it was asked; else each counts once."""
        return getattr(self.promise, "per_request", None) is not None

    @property
    def about(self) -> About:
        """The evidence that it comes from."""
        return About(fingerprint=self.fingerprint, question_budget_nano=self.question_budget_nano)

    @property
    def acts_as(self) -> float:
        """The threshold that a policy acts with, min(kappa, 1)."""
        return min(self.kappa, 1.0)

    @property
    def promises(self) -> bool:
        """Whether anything tighter than returning every answer is promised."""
        return self.promise.promises

    def sentence(self) -> str:
        """Say exactly what is promised, in one plain sentence; a budget a question adds another.

        >>> from farthing.promises.kinds import split
        >>> print(split.certify(np.arange(1, 201) / 200, "0.1", fingerprint="").sentence())
        A new question is covered with probability at least 0.9, on average over draws of the \
200 calibration questions: a right answer is in the returned set, or no model had one.
        """
        said = self.promise.sentence(self)
        if self.asked_of is not None:
            said = f"{said} {self.asked_of.sentence(proved=self.promises)}"
        if self.requests is not None and not self.per_request:
            said = f"{said} Each question counts once: of {self.requests:,} requests {self.n:,} \
ask distinct questions."
        if self.question_budget_nano is None:
            return said
        budget = usd(self.question_budget_nano)
        return f"{said} This was calibrated under a budget of {budget} a question, and holds under \
that budget alone."

    def __str__(self) -> str:
        return self.sentence()

    def plain_language(self) -> str:
        """Say what it means to who is given answers; it leaves the conditions out.

        >>> from farthing.promises.kinds import none
        >>> print(none.certify(0.4, fingerprint="").plain_language())
        Nothing is promised: answers may be wrong as often as they like.
        """
        said = self.promise.plain_language(self)
        if self.requests is not None and not self.per_request:
            said = f"{said} A question that is asked again counts once."
        if self.question_budget_nano is None:
            return said
        return f"{said} That is with a budget of {usd(self.question_budget_nano)} a question."

    def verify(self, evidence: object, fingerprint: str | None = None) -> list[str]:
        """Compute it again from its evidence; return what does not match, a sentence each.

        It is computed by the version of the rule that proved it; see `refuted`.

        What was asked for (alpha, delta, ...) and what stood beside it is taken from the
        certificate, all else from the evidence. What was not recorded of the requests
        (`AS_RECORDED`), who said what is right (`JUDGED`), and how often questions were looked at
        (`LOOK`), no evidence tells of.

        Args:
            evidence: what `certify` of its kind was given: [n] kappa* of the calibration questions,
                or a record of answers, costs, weights, groups.
            fingerprint: SHA-256 of the traces that the evidence is from; None: not compared.

        Returns:
            Nothing when the certificate is what this evidence gives.

        >>> from farthing.promises.kinds import split
        >>> scores = np.arange(1, 101) / 100
        >>> split.certify(scores, "0.1", fingerprint="f").verify(scores)
        []
        >>> split.certify(scores, "0.1", fingerprint="f").verify(scores / 2)
        ['kappa is 0.1 in the certificate but 0.05 by this evidence']
        """
        expected = self.promise.evidence
        if not isinstance(evidence, expected):
            kind, wanted = type(self.promise).__name__, expected.__name__
            return [f"a {kind} is checked from its {wanted}, not from {type(evidence).__name__}"]
        if hasattr(evidence, "rule"):
            evidence = replace(cast("Any", evidence), rule=getattr(self.promise, "rule", 1))
        again = self.promise.recompute(evidence, self).of_questions(self.asked_of)
        again = again.among(getattr(self.promise, "chains", ()))
        if again.requests is None and (self.requests or 0) > again.n:
            # Evidence of distinct questions does not say how often each was asked.
            again = msgspec.structs.replace(again, requests=self.requests)
        if fingerprint is not None:
            again = msgspec.structs.replace(again, fingerprint=fingerprint)
        theirs = _fields(again)
        return [
            f"{name} is {_show(value)} in the certificate but {_show(theirs[name])} by this "
            "evidence"
            for name, value in _fields(self._by_evidence()).items()
            if value != theirs[name] and (name != "rule" or value > theirs[name])
        ]

    @property
    def refuted(self) -> str:
        """Why a promise that an older version proved is not proved; empty where it stands."""
        old = self.promises and getattr(self.promise, "rule", 2) == 1
        why = self.promise.refuted(self) if old else ""
        return why and f"The promise is not proved: {why}. Calibrate again with this version."

    def _by_evidence(self) -> "Certificate":
        besides = (AS_RECORDED, JUDGED, LOOK)
        kept = tuple(one for one in self.conditional_on if not one.startswith(besides))
        return msgspec.structs.replace(self, conditional_on=kept)

    def to_json(self) -> dict[str, Any]:
        """Return the certificate as JSON values; an infinite number is the text `inf`.

        What certificates did not always say stands there only where it is said, so that the mark of
        one that was made before stays as it is.
        """
        body: dict[str, Any] = _portable(msgspec.to_builtins(self, enc_hook=_encode))
        unsaid = {name for name in ("asked_of", "requests") if body[name] is None}
        promise = body["promise"]
        later = ("per_request", "shared_by", "delta_share", "chains")
        unsaid_there = {name for name in later if not promise.get(name)}
        unsaid_there |= {"rule"} if promise.get("rule") == 1 else set()
        kept = {name: value for name, value in promise.items() if name not in unsaid_there}
        return {name: v for name, v in body.items() if name not in unsaid} | {"promise": kept}

    @classmethod
    def from_json(cls, body: Any) -> "Certificate":
        """Read what `to_json` wrote."""
        if isinstance(body, dict) and "guarantee" in body and "promise" not in body:
            raise CalibrationError(
                "not a certificate of this version, but one of an older Farthing; calibrate again "
                "with this version"
            )
        try:
            certificate: Certificate = msgspec.convert(body, cls, strict=False, dec_hook=_decode)
        except msgspec.ValidationError as problem:
            raise CalibrationError(f"not a certificate: {problem}") from None
        if _has_nan(msgspec.to_builtins(certificate, enc_hook=_encode)):
            raise CalibrationError("not a certificate: one of its numbers is NaN")
        return certificate


def _encode(value: Any) -> str:
    if not isinstance(value, Fraction):
        raise NotImplementedError(f"a certificate holds no {type(value).__name__}")
    return exact_text(value)


def _decode(kind: type, value: Any) -> Any:
    """Read a level, or a promise by the tag of its kind; a ValueError gets the field's name."""
    try:
        if kind is Fraction:
            return exact_level(value, "a level")
        if kind is Margin:
            return exact_margin(value, "a margin")
        if kind is not Payload or not isinstance(value, dict):
            raise TypeError(f"Expected `object`, got `{type(value).__name__}`")
        record = registered(str(value.get("kind")))
    except (CalibrationError, UnknownNameError) as problem:
        raise ValueError(str(problem)) from None
    if "rule" in getattr(record, "__struct_fields__", ()):
        value = {"rule": 1, **value}  # what a certificate did not always say
    return msgspec.convert(value, record, strict=False, dec_hook=_decode)


@cache
def kinds_asked() -> "Mapping[str, type[Promise]]":
    """Return every kind that can be asked for, of other packages as well, by its name."""
    found = set()
    for point in entry_points(group=GROUP):
        try:
            found.add(point.load().asks())
        except (ImportError, AttributeError):  # a package that is broken, or of another version
            continue
    asked = sorted(found - {None}, key=lambda kind: (kind.place, kind.kind))
    return {kind.kind: kind for kind in asked}


@cache
def payload_of(kind: str) -> type[Payload]:
    """Return what is known of a kind by its name; of one that is not installed, as of any."""
    try:
        return registered(kind)
    except (MissingPackageError, UnknownNameError):
        return Payload


def registered(name: str) -> type[Payload]:
    """Return the record of a registered kind, also of another package's.

    Guarantees are looked up here, since this room must not see `plugins`, which loads models.
    """
    found = entry_points(group=GROUP)
    if name not in found.names and name in OF_THE_LAB:
        raise MissingPackageError(f"a promise of kind '{name}'", "farthing-lab")
    if name not in found.names:
        raise UnknownNameError("guarantee", name, sorted(found.names))
    record: type[Payload] = found[name].load()
    return record


def _fields(certificate: Certificate) -> dict[str, Any]:
    common = msgspec.structs.asdict(certificate)
    promise: Any = common.pop("promise")
    return common | {"promise": type(promise).__name__} | msgspec.structs.asdict(promise)


def _show(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_show(part)}" for name, part in value.items())
    if isinstance(value, Fraction):
        return exact_text(value)
    return f"{value.kappa:g}" if isinstance(value, Threshold) else str(value)


def _portable(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _portable(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_portable(part) for part in value]
    return "inf" if isinstance(value, float) and value == np.inf else value


def _has_nan(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_nan(part) for part in value.values())
    if isinstance(value, list | tuple):
        return any(_has_nan(part) for part in value)
    return isinstance(value, float) and bool(np.isnan(value))
