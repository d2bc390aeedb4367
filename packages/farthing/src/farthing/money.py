"""Money as integer nano-dollars, rounded up wherever it is added up or compared.

One nano-dollar is 1e-9 USD: a million tokens at a cent are 10 nano-dollars each. Floats in USD are
for display and for files that people read.
"""

from decimal import ROUND_CEILING, Decimal
from math import floor, isfinite, log10

NANO_PER_USD = 1_000_000_000


def nano_from_usd(usd: float | str | Decimal) -> int:
    """Convert dollars to nano-dollars, exactly where possible, else rounded up.

    A float counts as the decimal it prints as, so 4.89e-05 is 48,900 and not 48,901.

    >>> nano_from_usd(4.89e-05), nano_from_usd("0.0000000001")
    (48900, 1)
    """
    exact = Decimal(usd) if isinstance(usd, str | Decimal) else Decimal(repr(float(usd)))
    return int((exact * NANO_PER_USD).to_integral_value(rounding=ROUND_CEILING))


def usd_from_nano(nano: float) -> float:
    """Convert nano-dollars to dollars, for display.

    >>> usd_from_nano(48_900)
    4.89e-05
    """
    return float(nano) / NANO_PER_USD


def rounded_usd(usd: float) -> float:
    """Round dollars to whole nano-dollars, so that a mean or a sum has no more digits than money.

    >>> rounded_usd(0.00036725099999999997), rounded_usd(1e-10)
    (0.000367251, 0.0)
    """
    return round(usd, 9)


def dollars(nano: float) -> str:
    """Write nano-dollars as messages do: in dollars, six digits at most, without an exponent.

    >>> dollars(200), dollars(25_702_500), dollars(5_000_000_000), dollars(-1)
    ('$0.0000002', '$0.0257025', '$5', '−$0.000000001')
    """
    written = significant(abs(usd_from_nano(nano)), 6)
    sign = "−" if nano < 0 else ""
    return f"{sign}${written.rstrip('0').rstrip('.') if '.' in written else written}"


def significant(value: float, digits: int = 3) -> str:
    """Write a number with so many significant digits and no exponent.

    >>> significant(0.00004712), significant(12.3456), significant(1234.5)
    ('0.0000471', '12.3', '1,234')
    """
    if not isfinite(value):
        return "–"
    if value == 0:
        return "0"
    places = max(0, digits - 1 - floor(log10(abs(value))))
    return f"{value:,.{places}f}"
