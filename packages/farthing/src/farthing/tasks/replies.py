"""What a reply says: an answer, or yes or no. What cannot be read is None, never a guess.

Only the reply itself is read, from a place that its prompt fixed; quoted text further on in it,
whatever it looks like, changes nothing.
"""

import re

_ANSWER = re.compile(
    r"^[ \t>*_#\-]{0,20}(?:final |my )?answer[*_]{0,3}[ \t]{0,3}:[*_]{0,3}[ \t]*(?P<colon>\S.*)$"
    r"|\bthe (?:final |correct )?answer is:?[ \t]{1,3}(?P<is>\S.*?)(?=\.?$|\.\s)",
    re.IGNORECASE,
)
_HASHES = re.compile(r"^.*####[ \t]*(\S.*)$", re.MULTILINE)
_TAGGED = re.compile(r"<answer>\s*(\S.*?)\s*</answer>", re.DOTALL)
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{")
_WRAPPING = ("**", "__", "`", '"', "“”", "<>")
_YES_OR_NO = re.compile(r"\W*(?:answer\W+)?(yes|no)\W*", re.IGNORECASE)


def read_answer(reply: str) -> str | None:
    r"""Return the answer that a reasoned reply ends in.

    That is the last `Answer: ...` or "the answer is ..."; failing that what it boxes, what stands
    after `####`, or between `<answer>` and `</answer>`.

    >>> read_answer("Rome? No: it was Paris.\nAnswer: **Paris**")
    'Paris'
    >>> read_answer(r"so it is $\boxed{\frac{1}{2}}$."), read_answer("I cannot tell.")
    ('\\frac{1}{2}', None)
    """
    # Most lines of a long reply are plainly no answer; the pattern is slow at finding that out.
    lines = [line for line in reply.split("\n") if "answer" in line.casefold()]
    found = [match for line in lines for match in _ANSWER.finditer(line)]
    if found:
        answer = unwrapped(found[-1]["colon"] or found[-1]["is"])
        return (boxed(answer) or answer) or None
    marked = _HASHES.findall(reply) or _TAGGED.findall(reply)
    return boxed(reply) or (unwrapped(marked[-1]) if marked else None) or None


def boxed(text: str) -> str | None:
    r"""Return what the last `\boxed{...}` holds, braces balanced; None where there is none.

    >>> boxed(r"\boxed{3} or rather \boxed{\sqrt{2}}"), boxed(r"\boxed{2"), boxed("2")
    ('\\sqrt{2}', None, None)
    """
    openings = list(_BOXED.finditer(text))
    if not openings:
        return None
    start, depth = openings[-1].end(), 1
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[start:at].strip() or None
    return None


def unwrapped(answer: str) -> str:
    """Return an answer without emphasis or quotes around the whole of it.

    >>> unwrapped(' **"Paris"** '), unwrapped('"A" and "B"'), unwrapped("[1, 2]")
    ('Paris', '"A" and "B"', '[1, 2]')
    """
    answer = answer.strip()
    for signs in _WRAPPING:
        left, right = (signs[0], signs[1]) if signs in {"“”", "<>"} else (signs, signs)
        inside = answer.removeprefix(left).removesuffix(right)
        whole = answer == left + inside + right and left not in inside and right not in inside
        if whole and inside.strip():
            return unwrapped(inside)
    return answer


def read_yes_or_no(reply: str) -> bool | None:
    """Return what a reply says that is yes or no and nothing else; None where it is neither.

    >>> [read_yes_or_no(reply) for reply in ("Yes.", "**No**", "Yes, but", "yes or no", "")]
    [True, False, None, None, None]
    """
    match = _YES_OR_NO.fullmatch(reply)
    return match[1].casefold() == "yes" if match else None
