"""A promise in plain words: what will happen to a hundred questions."""

from fractions import Fraction

from farthing.calibration.base import Certificate


def plainly(certificate: Certificate) -> str:
    """Say in one sentence what a promise means to who is given answers.

    It leaves conditions out; `Certificate.sentence` is exact.

    >>> print(plainly(Certificate(guarantee="marginal", kappa=0.4, alpha="0.1", n=200, k=20)))
    At least 90 of 100 new questions of the same kind get a right answer among those returned, or \
had none to find, on average over what chance gives one to calibrate on.
    >>> print(plainly(Certificate(guarantee="none")))
    Nothing is promised: answers may be wrong as often as they like.
    """
    if not certificate.promises:
        return _NOTHING.get(certificate.guarantee, _EVERYTHING)
    if certificate.guarantee in _MENU:
        return _MENU[certificate.guarantee](certificate)
    return _coverage(certificate)


_EVERYTHING = "Nothing is left out to save money: every answer is paid for and returned."
_NOTHING = {
    "none": "Nothing is promised: answers may be wrong as often as they like.",
    "online": "Nothing is promised yet: the stream of questions was too short.",
    "selective": "No answer may be trusted as often as was asked for, so none is given.",
    "parity": "Nothing cheaper is known to be as good as the reference, so that one answers.",
    "budget": "No setting is known to be cheap enough, so none is used.",
}


_QUESTIONS = {
    "per-group": "new questions of each group",
    "online": "questions of a long stream like this one",
    "weighted": "questions of the mix that is to come",
}


def _coverage(certificate: Certificate) -> str:
    enough = _of_hundred(1 - Fraction(certificate.alpha or 0))
    questions = _QUESTIONS.get(certificate.guarantee, "new questions of the same kind")
    if certificate.given == "solvable":
        questions += " that can be solved"
    or_none = "" if certificate.given == "solvable" else ", or had none to find"
    tail = {
        "pac": f"and you may be {_sure(certificate)} % sure of that",
        "online": f"give or take {_of_hundred(Fraction(certificate.bound or 0))} of them",
    }.get(certificate.guarantee, "on average over what chance gives one to calibrate on")
    return (
        f"At least {enough} of 100 {questions} get a right answer among those returned{or_none}, "
        f"{tail}."
    )


def _selective(certificate: Certificate) -> str:
    wrong = _of_hundred(Fraction(certificate.alpha or 0))
    silent = round(100 * (1 - (certificate.answered or 0) / certificate.n))
    return (
        f"At most {wrong} of 100 answers that are given are wrong, and you may be "
        f"{_sure(certificate)} % sure of that; about {silent} of 100 questions get no answer."
    )


def _parity(certificate: Certificate) -> str:
    fewer = _of_hundred(Fraction(certificate.epsilon or 0))
    reference = certificate.reference or "the reference model"
    return (
        f"Of 100 questions at most {fewer} fewer are answered right than by {reference} alone, and "
        f"you may be {_sure(certificate)} % sure of that."
    )


def _budget(certificate: Certificate) -> str:
    usd = (certificate.budget_nano or 0) / 1e6
    return (
        f"A thousand questions cost less than ${usd:.3g} on average, and you may be "
        f"{_sure(certificate)} % sure of that; how many are answered right is not promised."
    )


_MENU = {"selective": _selective, "parity": _parity, "budget": _budget}


def _of_hundred(share: Fraction) -> str:
    return f"{float(100 * share):.3g}"


def _sure(certificate: Certificate) -> str:
    return _of_hundred(1 - Fraction(certificate.delta or 0))
