"""What a text says, however it is typed: the form that copies of a question have in common."""

import re
from unicodedata import category, normalize

_TYPED: dict[int, str | int] = {**str.maketrans("‘’‚‛“”„‐‒–—−", "'" * 4 + '"' * 3 + "-" * 5)}
_TYPED |= {ord(digit): f"^{normalize('NFKC', digit)}" for digit in "⁰¹²³⁴⁵⁶⁷⁸⁹"}
_TYPED |= dict.fromkeys([0xAD, *range(0x200B, 0x2010), *range(0x2060, 0x2070), 0xFEFF], "")
"""Quotes and dashes as on keyboards, exponents apart from their base; what is not seen goes."""
_MARKS = "".join(c for c in map(chr, range(0x3100)) if category(c) in {"Po", "Pi", "Pf", "Pd"})
_MARKS = re.sub(r"[#%&*@/\\]", "", _MARKS) + " "
"""Punctuation but for brackets, and for what may be a part of a name or an amount."""


def canonical(text: str) -> str:
    r"""Return what a text says; empty where it says nothing.

    Unicode forms, case, white space and punctuation at the ends do not count, unless it is all.

    >>> canonical(" Who\u00a0wrote\n\u201cFaust\u201d?") == canonical('WHO wrote "Faust')
    True
    >>> [canonical(text) for text in ("-5?", "5!", "2\u00b3", "C#", "?!")]
    ['-5', '5!', '2^3', 'c#', '?!']
    """
    said = text.casefold()
    if not text.isascii():
        said = normalize("NFKC", normalize("NFKC", text.translate(_TYPED)).casefold())
    said = " ".join(said.split())
    if not (bare := said.strip(_MARKS)):
        return said
    before, _, after = said.partition(bare)
    if bare[0].isdigit() and before.endswith(("-", ".", "!")):
        bare = before[-1] + bare
    if bare[-1].isdigit() and after.startswith(("-", "!")):
        bare += after[0]
    return bare
