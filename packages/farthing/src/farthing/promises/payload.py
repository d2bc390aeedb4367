"""What a certificate says of one kind of promise, and what every kind can be asked."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farthing.promises.base import Promise
    from farthing.promises.certificate import Certificate
    from farthing.promises.chains import Chain
    from farthing.promises.figures import Figure
    from farthing.promises.observed import Acted, Facts


@dataclass(frozen=True)
class Reads:
    """By which grades questions are read."""

    same_as: str | None = None
    """The role whose answer is what counts as right; None: what is right does."""
    at_worst: str | None = None
    """The role beside which answers that nobody graded count at worst; None: all are graded."""
    ungraded: bool = False
    """Whether questions are taken as they are, though nobody graded some answers."""
    as_proved: bool = False
    """Whether the grade is that of the questions which proved it, where it was not what is
    right."""


@dataclass(frozen=True)
class Watched:
    """What of a promise live traffic can be held to."""

    promised: float | None
    """The least share of replies that keep it; None: it is no such share."""
    by_reference: bool = False
    """Whether the reference's own answer says if it was kept; else somebody who knows."""
    reference: str | None = None
    """The model that it compares with; None: it compares with none."""


class Payload:
    """What a certificate keeps of one kind of promise: a frozen msgspec struct of its own fields.

    The class of each kind is in its file in `kinds`, with a tag and `evidence`, the record or array
    that it is computed from. A kind says only what is not as here.
    """

    __slots__ = ()

    evidence: ClassVar[type]
    right: ClassVar[Literal["answer", "sets", "given"]] = "answer"
    """What is promised to be right: one answer a question, one of a set, or each that is given."""
    whole_sets: ClassVar[bool] = False
    """Whether a reply keeps it only where the whole set is returned."""
    withholds: ClassVar[bool] = False
    """Whether it lets a policy give no answer."""
    difference: ClassVar[bool] = False
    """Whether the figure is a difference of two shares, rather than a share."""
    sought: ClassVar[bool] = True
    """Whether a promise was asked for at all."""
    caveat: ClassVar[str] = ""
    """Why it holds for no live answer; empty where it may."""
    not_audited: ClassVar[str] = ""
    """Why live audits cannot be about it; empty where they can."""

    @property
    def promises(self) -> bool:
        """Whether an operating point is proved; of sets, anything tighter than every answer."""
        return getattr(self, "k", 0) > 0 or getattr(self, "point", None) is not None

    def sentence(self, of: "Certificate") -> str:
        """Say exactly, in one plain sentence, what is promised."""
        raise NotImplementedError

    def plain_language(self, of: "Certificate") -> str:
        """Say in one sentence what that means to who is given answers, without the conditions."""
        raise NotImplementedError

    def recompute(self, evidence: Any, of: "Certificate") -> "Certificate":
        """Certify again, as this certificate was asked for, from other evidence of its type."""
        asked = self.asked()
        if asked is None:
            raise NotImplementedError
        return asked.prove(evidence, **of.about)

    @classmethod
    def kind(cls) -> str:
        """Return the name that it is registered under."""
        return str(cls.__struct_config__.tag)  # type: ignore[attr-defined]

    @classmethod
    def asks(cls) -> "type[Promise] | None":
        """Return what a user asks for to get such a promise; None: nobody asks for it."""
        return None

    def asked(self) -> "Promise | None":
        """Return what was asked for, to be proved once more; None: questions alone do not do."""
        return None

    def among(self, chains: "Sequence[Chain]") -> "Payload":
        """Return it with the candidates that were proved side by side, where it keeps them."""
        del chains
        return self

    @property
    def held_to(self) -> str | None:
        """The role whose answers it is held against; None: it is held against none."""
        return None

    @property
    def fallback(self) -> str | None:
        """The role that answers everything where it is not proved; None: there is none."""
        return None

    @property
    def passes_to(self) -> str | None:
        """The role that questions without an answer are passed on to; None: to nobody."""
        return None

    @property
    def reads(self) -> Reads:
        """By which grades it is measured."""
        return Reads()

    @property
    def reliability(self) -> Fraction | None:
        """The least share of answers that is right, or the reference's; None: no such share."""
        alpha = getattr(self, "alpha", None)
        return 1 - alpha if isinstance(alpha, Fraction) else None

    @property
    def watched(self) -> Watched:
        """What live traffic can be held to."""
        level = self.reliability
        return Watched(None if level is None else float(level))

    def realised(self, of: "Acted", questions: "Facts") -> "Figure | None":
        """Measure what is promised, on questions that proved nothing; None: it cannot be.

        Args:
            of: what the policy did by itself.
            questions: what else is known of them.
        """
        del of, questions
        return None

    def refuted(self, of: "Certificate") -> str:
        """Say what the first rule got wrong, where it proved this; empty where nothing is known."""
        if not self.withholds or of.asked_of is None or of.asked_of.missing != "worst":
            return ""
        return "calls that were not made counted as answers withheld, and not as wrong ones"

    def forecast(self, evidence: Any, of: "Certificate") -> str:
        """Say what would probably be proved where nothing was; empty where nobody knows."""
        del evidence, of
        return ""

    def too_short(self, of: "Certificate") -> str:
        """Say that a stream was too short to promise anything of it; empty where it was not."""
        del of
        return ""

    def rank(self, of: "Certificate") -> str:
        """Say which of how many scores the threshold is; empty where it is none."""
        k = getattr(self, "k", 0)
        return f", rank {k} of {of.n} questions" if k else ""

    def spread(self) -> tuple[float, float] | None:
        """Return what coverage is in 95 % of such calibration draws; None: it is not known."""
        known: tuple[float, float] | None = getattr(self, "interval", None)
        return known


class Recorded(
    Payload,
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
):
    """A payload of this package: a kind adds its fields, and a tag."""

    rule: int = 1
    """The version of the rule that proved it; the default is the newest of the kind."""
