"""Sentences that several guarantees share: what must hold, what ends a promise, how it is said."""

from collections.abc import Sequence
from fractions import Fraction

from farthing.promises.certificate import AS_RECORDED, JUDGED, LOOK, Certificate, Population
from farthing.promises.levels import exact_text, usd

EXCHANGEABLE = "A new question is exchangeable with the calibration questions."
INDEPENDENT = "The calibration questions and a new one are independent draws of one kind."
HELD_OUT = "No calibration question was used in training or in choosing the policy."
SAME_SYSTEM = "Models, prompts, prices and the version of the features are those of the traces."
SIDE_BY_SIDE = (
    "No calibration question was used in training, or in saying which policies were proved, in "
    "which order and at which share of what may fail; the cheapest of those proved was taken."
)
ORDERED = "The settings to test and their order were chosen without the calibration questions."
CAPPED = "The policy acts with min(kappa, 1)."
MENU = (INDEPENDENT, HELD_OUT, ORDERED, SAME_SYSTEM)
"""What a proof of one of several operating points rests on."""
LOT = "Chance alone drew the questions to be graded, before any of their grades was known."

DRIFT = "The kind or mix of questions changes."
NEW_SYSTEM = "A model, prompt, price, tool, or the version of the features changes."
RETRAINED = "The policy is trained again or its weights change."


def ends(question_budget_nano: int | None) -> tuple[str, ...]:
    """Return what ends a promise that was calibrated under a budget a question, or without one."""
    return (DRIFT, NEW_SYSTEM, RETRAINED, cut_short(question_budget_nano))


def as_recorded(lacks: Sequence[str]) -> str:
    """Say that requests must be made as those were of which nobody knows how.

    >>> print(as_recorded(["parameters"]))
    Requests are made as the recorded ones were, whose parameters were not recorded.
    """
    were = "was" if list(lacks) == ["system prompt"] else "were"
    named = " and ".join(lacks)
    return f"{AS_RECORDED}{named} {were} not recorded."


def judged(judge: str, reference: str) -> str:
    """Say that a model said which answers are right, and that its error is another matter.

    >>> print(judged("mini", "large"))
    Right is what mini calls the same as large's answer; its own error is not in the promise.
    """
    return (
        f"{JUDGED}{judge} calls the same as {reference}'s answer; its own error is not in the "
        "promise."
    )


def look(number: int) -> str:
    """Say that a certificate is not the first that was asked of some questions."""
    risk = "each errs at its own risk, the best of them at the sum of all"
    return f"{LOOK}{number} on these questions: {risk}."


def by_lot(drawn: bool) -> tuple[str, ...]:  # noqa: FBT001 - says whether, and no more
    """Return what a proof by a sample rests on beside; nothing where there was none."""
    return (LOT,) if drawn else ()


def cut_short(question_budget_nano: int | None) -> str:
    """Say that episodes must end as they did in calibration."""
    if question_budget_nano is None:
        stopped = "A budget or a failed call stops"
    else:
        stopped = f"Another budget than {usd(question_budget_nano)} or a failed call stops"
    return f"{stopped} an episode that the policy would have continued."


def covered(alpha: Fraction, population: Population = "all") -> str:
    """Say that a question is covered with probability 1 - alpha; `meaning` says what that is.

    >>> print(covered(Fraction(1, 10)))
    A new question is covered with probability at least 0.9
    """
    subject = "A new question" if population == "all" else "A new solvable question"
    return f"{subject} is covered with probability at least {exact_text(1 - alpha)}"


def meaning(population: Population = "all") -> str:
    """Say what a covered question is, as the end of a sentence."""
    or_none = ", or no model had one" if population == "all" else ""
    return f"a right answer is in the returned set{or_none}."


def counted(of: Certificate, what: str = "questions") -> str:
    """Say how many questions a certificate comes from, and that they are distinct.

    >>> from farthing.promises.kinds import none
    >>> print(counted(Certificate(promise=none.NoPromise(), n=400, requests=2_000)))
    400 distinct questions
    """
    if of.requests is None:
        return f"{of.n} {what}"
    return f"{of.n:,} distinct {what}"


def units(of: Certificate) -> str:
    """Return what a promise counts: questions, or requests."""
    return "requests" if of.per_request else "questions"


def too_few(of: Certificate, alpha: Fraction) -> str:
    """Say that nothing tighter than everything is promised."""
    pays = "" if of.question_budget_nano is None else " that the budget pays for"
    return (
        f"{counted(of, 'calibration questions')} are too few to promise anything tighter than "
        f"everything at alpha = {exact_text(alpha)}, so every answer{pays} is returned."
    )


def confidence_text(delta: Fraction) -> str:
    """Write the confidence 1 - delta as a decimal: exactly, or to four places, rounded down.

    >>> confidence_text(Fraction(1, 10)), confidence_text(Fraction(1, 150))
    ('0.9', '0.9933')
    """
    sure = 1 - delta
    return exact_text(Fraction(sure.numerator * 10**4 // sure.denominator, 10**4))


def confident(delta: Fraction, of: Certificate, claim: str) -> str:
    """Say a claim that is made with confidence 1 - delta.

    >>> from farthing.promises.kinds import none
    >>> print(confident(Fraction(1, 20), none.certify(0, fingerprint=""), "It is so."))
    With confidence 0.95 in the draw of 0 questions, it is so.
    """
    sure = confidence_text(delta)
    return f"With confidence {sure} in the draw of {counted(of)}, {claim[0].lower()}{claim[1:]}"


def unproved(delta: Fraction, of: Certificate, claim: str) -> str:
    """Say that a claim about operating points could not be proved at confidence 1 - delta."""
    sure = confidence_text(delta)
    whom = counted(of, "calibration questions")
    return f"{whom} do not prove at confidence {sure} that {claim}"


def chosen(threshold: float | None = None) -> str:
    """Name what was chosen, by its threshold of confidence where it has one.

    >>> print(chosen(), chosen(0.75), sep="; ")
    the policy; a confidence of 0.75 or more
    """
    return "the policy" if threshold is None else f"a confidence of {threshold:.3g} or more"


def candidate(name: str, number: int) -> str:
    """Name the candidate that is promised, as a sentence of its own; empty where it has no name.

    >>> print(candidate("gpt-4o, by its confidence", 12))
     Of 12 candidates that were tested this is gpt-4o, by its confidence.
    """
    if not name:
        return ""
    return (
        f" Of {number} candidates that were tested this is {name}."
        if number > 1
        else (f" This is {name}.")
    )


def side_by_side(
    candidates: int | None, share: Fraction | None = None, several: int | None = None
) -> str:
    """Say that delta was shared, as a sentence of its own; empty where one candidate has it all.

    Args:
        candidates: how many had equal shares; None: shares differ, or one has all of it.
        share: the share of delta, where shares differ.
        several: how many had shares that differ, where that is known.

    >>> print(side_by_side(2))
     It was one of 2 candidates, each proved at its share of what may fail.
    >>> print(side_by_side(None, Fraction(7, 20)))
     It was one of several candidates, proved at 0.35 of what may fail.
    """
    if share is not None:
        number = several or "several"
        return (
            f" It was one of {number} candidates, proved at {exact_text(share)} of what may fail."
        )
    if candidates is None:
        return ""
    return f" It was one of {candidates} candidates, each proved at its share of what may fail."


def everything(of: Certificate) -> str:
    """Say in plain language that nothing tighter than everything is promised."""
    if of.question_budget_nano is None:
        return "Nothing is left out to save money: every answer is paid for and returned."
    return "Nothing is promised: every answer that the budget pays for is returned."


ON_AVERAGE = "on average over what chance gives one to calibrate on"


def of_hundred_covered(
    alpha: Fraction,
    population: Population = "all",
    questions: str = "new questions of the same kind",
    how_sure: str = ON_AVERAGE,
) -> str:
    """Say in plain language how many of a hundred questions are covered."""
    solvable = " that can be solved" if population == "solvable" else ""
    or_none = ", or had none to find" if population == "all" else ""
    return (
        f"At least {of_hundred(1 - alpha)} of 100 {questions}{solvable} get a right answer among "
        f"those returned{or_none}, {how_sure}."
    )


def of_hundred(share: Fraction | float) -> str:
    """Write a share as a number of a hundred.

    >>> of_hundred(Fraction(1, 20)), of_hundred(1 / 3)
    ('5', '33.3')
    """
    return f"{float(100 * share):.3g}"


def how_sure(delta: Fraction) -> str:
    """Say in plain language how sure a promise with confidence 1 - delta is.

    >>> print(how_sure(Fraction(1, 20)))
    and you may be 95 % sure of that
    """
    return f"and you may be {of_hundred(1 - delta)} % sure of that"


def fewer(epsilon: Fraction) -> str:
    """Say how many of a hundred questions may be lost, or must be won.

    >>> fewer(Fraction(1, 50)), fewer(Fraction(0)), fewer(Fraction(-1, 50))
    ('at most 2 fewer', 'more', 'over 2 more')
    """
    if not epsilon:
        return "more"
    number = of_hundred(abs(epsilon))
    return f"at most {number} fewer" if epsilon > 0 else f"over {number} more"
