"""Options of the promises that `farthing calibrate` can make, and which of them go together."""

from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from farthing.cli import files
from farthing.cli.options import check_agreement, read_delta, read_epsilon, read_usd
from farthing.errors import InputError
from farthing.money import dollars

if TYPE_CHECKING:
    from farthing.process.budget import PerQuestion
    from farthing.promises.kinds.agreement import JudgeShare
    from farthing.recommendation.promises import Promise as Asked

Promise = Literal["coverage", "selective", "parity", "agreement", "budget", "shift"]
Method = Literal["split", "pac", "groups", "online"]
Per = Literal["question", "request"]

NEEDS: dict[str, tuple[str, ...]] = {
    "coverage": (),
    "selective": ("delta",),
    "parity": ("epsilon", "delta"),
    "agreement": ("epsilon", "delta"),
    "budget": ("budget", "most", "delta"),
    "shift": ("target",),
}
"""The options that a promise cannot do without."""
TAKES = NEEDS | {
    "coverage": ("delta",),
    "selective": ("delta", "escalate", "epsilon"),
    "parity": ("epsilon", "delta", "reference", "per"),
    "agreement": ("epsilon", "delta", "reference", "judge_epsilon", "judge_delta", "per"),
}
"""The options that mean something to a promise, beside --alpha."""
SUCH_AS = {
    "delta": "--delta 0.1, how often the promise may fail",
    "epsilon": "--epsilon 0.02, the accuracy that may be lost or the share answered otherwise",
    "budget": "--budget 0.001, in USD a question",
    "most": "--most 0.02, the largest possible cost of a question in USD, from prices and limits",
    "target": "--target FILE, traces of the questions that are to come",
}

Delta = Annotated[
    Fraction | None,
    typer.Option(parser=read_delta, metavar="DECIMAL", help="How often the promise may fail."),
]
Epsilon = Annotated[
    Fraction | None,
    typer.Option(
        parser=read_epsilon,
        metavar="DECIMAL",
        help="Parity: accuracy that may be lost. Agreement: share answered otherwise.",
    ),
]
Reference = Annotated[
    str | None,
    typer.Option(
        metavar="ROLE",
        help="Parity, agreement: with whom; by default the role right most often in training.",
    ),
]
PerWhat = Annotated[
    Per | None,
    typer.Option(
        help="Parity, agreement: a question that is asked again counts once, or as often as it is "
        "asked (request). By default once."
    ),
]
JudgeEpsilon = Annotated[
    Fraction | None,
    typer.Option(
        parser=read_epsilon,
        metavar="DECIMAL",
        help="Agreement: what of epsilon goes to the errors of a judge who says what is the same.",
    ),
]
JudgeDelta = Annotated[
    Fraction | None,
    typer.Option(
        parser=read_delta, metavar="DECIMAL", help="Agreement: what of delta goes to them."
    ),
]
Escalate = Annotated[
    str | None,
    typer.Option(
        metavar="ROLE",
        help="Selective: who answers where the policy is not sure enough, as part of the promise, "
        "whose --epsilon is the accuracy that may be lost.",
    ),
]
Budget = Annotated[
    Fraction | None,
    typer.Option(parser=read_usd, metavar="USD", help="Budget: expected cost of a question."),
]
Most = Annotated[
    Fraction | None,
    typer.Option(
        parser=read_usd,
        metavar="USD",
        help="Budget: largest possible cost of a question, from prices and limits.",
    ),
]
Target = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Shift: traces of the mix of questions that is to come."),
]
QuestionBudget = Annotated[
    Fraction | None,
    typer.Option(parser=read_usd, metavar="USD", help="What a question may cost when served."),
]
Largest = Annotated[
    list[str],
    typer.Option(
        metavar="ROLE=USD",
        help="The most that a call of a role may cost, where traces say none; for each role.",
    ),
]


def per_question(budget: Fraction | None, largest: list[str]) -> "PerQuestion | None":
    """Return the budget a question, with the bounds that were declared.

    Raises:
        InputError: a bound is not ROLE=USD, or there is no budget that it could be for.
    """
    from farthing.process.budget import PerQuestion

    bounds = dict(_bound(text) for text in largest)
    if budget is None:
        if bounds:
            raise InputError("--largest goes with --question-budget; give that too, or leave it")
        return None
    return PerQuestion(int(budget * 10**9), bounds or None)


def _bound(text: str) -> tuple[str, int]:
    role, equals, usd = text.partition("=")
    if not (role and equals):
        raise InputError(f"--largest {text}: write ROLE=USD, such as --largest guide=0.01")
    try:
        return role, int(read_usd(usd) * 10**9)
    except typer.BadParameter as problem:
        raise InputError(f"--largest {text}: {problem.message}") from None


@dataclass(frozen=True)
class Options:
    """The options beside --alpha; None where one was not given."""

    delta: Fraction | None
    epsilon: Fraction | None
    reference: str | None
    budget: Fraction | None
    most: Fraction | None
    target: Path | None
    judge_epsilon: Fraction | None = None
    judge_delta: Fraction | None = None
    escalate: str | None = None
    per: Per | None = None
    method: Method = "split"
    population: Literal["all", "solvable"] = "all"

    def check(self, promise: Promise) -> None:
        """Refuse options that the promise lacks, or that mean nothing to it.

        Raises:
            InputError: which, and what to do.
        """
        names = [f.name for f in fields(self) if f.name not in {"method", "population"}]
        used = [name for name in names if getattr(self, name) is not None]
        for name in NEEDS[promise]:
            if name not in used:
                raise InputError(f"--promise {promise} needs {SUCH_AS[name]}")
        for name in used:
            if name not in TAKES[promise]:
                whose = " or ".join(kind for kind, takes in TAKES.items() if name in takes)
                option = name.replace("_", "-")
                raise InputError(
                    f"--{option} means nothing to --promise {promise}, only to {whose}"
                )
        if promise == "agreement":
            check_agreement(self.epsilon)
        if promise != "coverage" and (self.method != "split" or self.population != "all"):
            raise InputError(f"--method and --population are for --promise coverage, not {promise}")
        if promise == "selective" and (self.epsilon is None) != (self.escalate is None):
            raise InputError(f"--escalate ROLE needs {SUCH_AS['epsilon']}, and that needs a ROLE")
        self._check_method(promise)

    @property
    def judge_share(self) -> "JudgeShare":
        """What of epsilon and delta goes to a judge's errors; by default half of each.

        Raises:
            InputError: it leaves nothing to the policy.
        """
        from farthing.promises.kinds.agreement import JudgeShare

        epsilon, delta = self.epsilon or Fraction(0), self.delta or Fraction(0)
        share = JudgeShare(
            epsilon=self.judge_epsilon or epsilon / 2, delta=self.judge_delta or delta / 2
        )
        if not (share.epsilon < epsilon and share.delta < delta):
            raise InputError(
                "--judge-epsilon and --judge-delta must be below --epsilon and --delta"
            )
        return share

    def _check_method(self, promise: Promise) -> None:
        if self.method == "pac" and self.delta is None:
            raise InputError("a PAC promise needs a delta, the share of failures allowed; try 0.1")
        if promise == "coverage" and self.delta is not None and self.method != "pac":
            raise InputError(f"--delta goes with --method pac, and not with {self.method}")
        if self.method == "online" and self.population != "all":
            raise InputError("an online promise is about all questions; leave `solvable` out")

    def asked(self, promise: Promise, alpha: Fraction) -> "Asked":
        """Return the promise that is asked for, once `check` has passed.

        Raises:
            InputError: the budget is not below the largest possible cost.
        """
        from farthing.recommendation import promises

        delta, level = self.delta or Fraction(0), 1 - alpha
        if promise == "coverage":
            return promises.Coverage(
                level,
                self.delta,
                population=self.population,
                within_groups=self.method == "groups",
                online=self.method == "online",
            )
        if promise == "selective":
            kept = () if self.epsilon is None else (self.epsilon,)
            return promises.Selective(level, delta, self.escalate, *kept)
        if promise == "parity":
            return promises.Parity(
                self.reference, self.epsilon or Fraction(0), delta, per=self.per or "question"
            )
        if promise == "agreement":
            return promises.Agreement(
                self.reference,
                self.epsilon or Fraction(0),
                delta,
                self.judge_share,
                per=self.per or "question",
            )
        if self.target is not None:
            return promises.Shift(level, files.read_traces(self.target))
        budget, most = self.budget or Fraction(0), self.most or Fraction(0)
        if budget >= most:
            given, largest = (dollars(float(usd * 10**9)) for usd in (budget, most))
            raise InputError(
                f"--budget is {given}; it must be below --most, which is {largest}, or it is kept "
                "without any promise"
            )
        return promises.Budget(budget, most, delta)
