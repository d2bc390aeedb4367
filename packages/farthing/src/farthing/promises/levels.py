"""Levels, margins and amounts of money: read exactly, written exactly."""

from decimal import Decimal
from fractions import Fraction

from farthing.errors import CalibrationError, InputError
from farthing.money import NANO_PER_USD

LEVEL = "the level of a promise"
"""What messages call it."""
Level = Fraction | Decimal | str | float
"""A probability; a float counts as the decimal that it prints as, so 0.1 is exactly 1/10."""


def exact_level(value: Level, name: str = "alpha") -> Fraction:
    """Read a probability strictly between 0 and 1, exactly.

    >>> exact_level(0.1), exact_level("1/3"), exact_level("0.05")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 20))
    """
    level = _read(value)
    if level is None or not 0 < level < 1:
        raise CalibrationError(f"{name} is {value}; give a number between 0 and 1, such as 0.1")
    return level


class Margin(Fraction):
    """A difference of two shares, strictly between -1 and 1, exactly."""


def exact_margin(value: Level, name: str = "epsilon") -> Margin:
    """Read a difference of shares strictly between -1 and 1, exactly.

    >>> exact_margin("-0.01"), exact_margin(0)
    (Margin(-1, 100), Margin(0, 1))
    """
    margin = _read(value)
    if margin is None or not -1 < margin < 1:
        raise CalibrationError(f"{name} is {value}; give a number between -1 and 1, such as 0.02")
    return Margin(margin)


def _read(value: Level) -> Fraction | None:
    """Return a number exactly; None where it is none."""
    try:
        return Fraction(repr(float(value)) if isinstance(value, float) else value)
    except (ValueError, TypeError, OverflowError, ZeroDivisionError):
        return None


def exact_text(level: Fraction) -> str:
    """Write a fraction exactly, as a decimal where it has one.

    >>> exact_text(Fraction(1, 20)), exact_text(Fraction(1, 3)), exact_text(Fraction(-1, 100))
    ('0.05', '1/3', '-0.01')
    """
    if 10**40 % level.denominator:
        return str(level)
    if level < 0:
        return f"-{exact_text(-level)}"
    whole, part = divmod(level.numerator * (10**40 // level.denominator), 10**40)
    return f"{whole}.{part:040d}".rstrip("0").rstrip(".")


def usd(nano: int) -> str:
    """Write nano-dollars as dollars, exactly.

    >>> usd(500_000), usd(2_000_000_000)
    ('$0.0005', '$2')
    """
    return f"${exact_text(Fraction(nano, NANO_PER_USD))}"


def level_of(value: Level, name: str, such_as: str = "0.1") -> Fraction:
    """Read a probability strictly between 0 and 1, exactly."""
    try:
        return exact_level(value)
    except CalibrationError:
        raise InputError(
            f"{name} is {value}; give a number between 0 and 1, such as {such_as}"
        ) from None


def margin_of(value: Level) -> Margin:
    """Read how much accuracy may be lost, strictly between -1 and 1, exactly."""
    try:
        return exact_margin(value)
    except CalibrationError as problem:
        raise InputError(str(problem)) from None
