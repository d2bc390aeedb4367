"""What of a text may be kept: hooks that take personal data out before anything is written.

A hook is a function from a text to the text that may be kept. The configuration names one as
`module:function`; `farthing_gateway.recording.redaction:contacts` comes with Farthing.
"""

import re
from collections.abc import Callable
from importlib import import_module

from farthing.errors import InputError

Redact = Callable[[str], str]
_EMAIL = re.compile(r"[\w.+%-]{1,64}@[\w-]+(?:\.[\w-]+)+")
_CARD = re.compile(r"(?<![\w.])\d(?:[ -]?\d){12,18}(?![\w.]?\d)")
_PHONE = re.compile(
    r"(?<![\w.+])(?:"
    r"\+\d(?:[ ./-]?\(?\d\)?){6,14}"  # +49 171 1234567, +1 (555) 123-4567
    r"|\(\d{2,5}\) ?\d{2,4}(?:[ -]?\d{2,4}){1,3}"  # (555) 123-4567
    r"|0\d{1,4}[ /-]\d{3,}(?:[ -]\d{2,})*"  # 0171 1234567, 030/123456
    r"|\d{3}([-.])\d{3}\1\d{4}"  # 555-123-4567
    r")(?!\w)"
)
_SECRET = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:sk|pk|rk|fk)[-_][A-Za-z0-9_-]{8,}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|A[KS]IA[A-Z0-9]{16}|AIza[\w-]{30,}|hf_[A-Za-z0-9]{20,}"
    r"|eyJ[\w-]+\.[\w-]+\.[\w-]*"  # a JSON web token
    r")"
)


def load_redaction(name: str) -> Redact:
    """Load a hook.

    Args:
        name: the module that it is in and its name, such as `my_company.privacy:without_names`.
    """
    module, _, function = name.partition(":")
    if not module or not function:
        raise InputError(f"the redaction '{name}' is none; name it as module:function")
    try:
        found = getattr(import_module(module), function, None)
    except Exception as problem:
        raise InputError(
            f"the redaction '{name}': {module} cannot be imported ({problem}); install it, or "
            "check the name"
        ) from problem
    if not callable(found):
        raise InputError(f"the redaction '{name}': {module} has no function {function}")
    hook: Redact = found
    return hook


def contacts(text: str) -> str:
    """Replace e-mail addresses, telephone and card numbers, and what looks like an API key.

    A card number is 13 to 19 digits whose check digit is right (Luhn). A telephone number has a
    plus, parentheses or separators: ten digits in a row may be any number, and stay. Names and
    addresses stay too; a hook that knows yours can call this one.

    >>> contacts("Write to ann@example.org or +49 171 1234567, card 4111 1111 1111 1111")
    'Write to [e-mail] or [phone], card [card]'
    """
    kept = _SECRET.sub("[key]", text)
    kept = _EMAIL.sub("[e-mail]", kept)
    kept = _CARD.sub(lambda found: "[card]" if _is_card(found[0]) else found[0], kept)
    return _PHONE.sub("[phone]", kept)


def _is_card(written: str) -> bool:
    """Return whether the check digit of a card number is right: Luhn's, ISO/IEC 7812-1, annex B.

    >>> _is_card("4111-1111-1111-1111"), _is_card("4111-1111-1111-1112")
    (True, False)
    """
    digits = [int(digit) for digit in reversed(written) if digit.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0
