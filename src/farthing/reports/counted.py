"""How many of a thing there are, in words."""


def counted(n: int, thing: str) -> str:
    """Say how many there are.

    >>> counted(1, "question"), counted(1400, "question")
    ('1 question', '1,400 questions')
    """
    return f"{n:,} {thing}{'' if n == 1 else 's'}"
