"""What accounts take: amounts that can be added up, names that every database can hold."""

from collections.abc import Sequence

from farthing.storage.ledger.base import Amount

LARGEST = 10**16
"""The most of a unit that one call may cost; sums of such amounts fit 64 bits."""


def checked_amount(amount: Amount) -> Amount:
    """Return an amount that is neither negative nor too large.

    Raises:
        ValueError: it is.
    """
    if not all(0 <= part <= LARGEST for part in (amount.nano, amount.tokens, amount.calls)):
        raise ValueError(f"{amount}: each part must lie between 0 and {LARGEST:,}")
    return amount


def checked_name(name: str) -> str:
    """Return a name that is not empty and can be printed.

    Raises:
        ValueError: it is not so.
    """
    if not name or not name.isprintable():
        raise ValueError(f"{name!r}: a name must have characters, and only printable ones")
    return name


def checked_names(accounts: Sequence[str]) -> tuple[str, ...]:
    """Return the names of accounts, each once; raises like `checked_name`, and for none."""
    if not accounts:
        raise ValueError("name at least one account")
    return tuple(dict.fromkeys(checked_name(account) for account in accounts))
