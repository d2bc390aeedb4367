"""The symbols of the embedded language models, and the tokenizer that reads and writes them.

A symbol is a letter, a digit, a sign, or what always stands as a whole: a letter that a statement
is about (`b=`), an operation (`*3`, `+5`), a tag, a mode of the budget, the name of an expert. So a
statement is found by its first symbol alone.
"""

import re
from collections.abc import Sequence
from typing import Any

from farthing_lab.tasks.arithmetic import LETTERS, MULTIPLIERS, PLUS

PAD, END = "<pad>", "<end>"
TAGS = ("<call>", "</call>", "<reply>", "</reply>", "<answer>", "</answer>")
MODES = ("low:", "medium:", "high:")
EXPERTS = ("small", "large", "sums", "products")
SYMBOLS = (
    *(PAD, END),
    *TAGS,
    *MODES,
    *EXPERTS,
    *(f"{letter}=" for letter in LETTERS),
    *(f"*{times}" for times in MULTIPLIERS),
    *(f"+{plus}" for plus in PLUS),
    *LETTERS,
    *"0123456789",
    *"=;?!",
)
"""Every symbol, in the order of its number."""
NUMBERS = {symbol: number for number, symbol in enumerate(SYMBOLS)}
_WHOLE = re.compile("|".join(re.escape(s) for s in SYMBOLS if len(s) > 1) + "|.", re.DOTALL)
_NOT_READ = r"<<(?:quote|end) [0-9a-f]{8}>>|[\t-\r ]+"
"""Marks around what others wrote, which prompts have, and white space; Python and the tokenizer do
not mean the same by `\\s`."""
WHOLE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
"""Reads a conversation as one text."""
FIRST = "{{ messages[0]['content'] }}"
"""Reads the first message alone."""


def encode(text: str) -> list[int]:
    """Return the numbers of a text's symbols; what is none of them is 0, which says nothing.

    >>> encode("b=4<end>"), encode("b=4 ."), decode([16, 51])
    ([16, 51, 1], [16, 51, 0], 'b=4')
    """
    return [NUMBERS.get(symbol, 0) for symbol in _WHOLE.findall(re.sub(_NOT_READ, "", text))]


def unknown(text: str) -> list[str]:
    """Return what of a text is none of the symbols, each once, in its order.

    >>> unknown("b = $4, and $5")
    ['$', ',', 'n']
    """
    found = _WHOLE.findall(re.sub(_NOT_READ, "", text))
    return [symbol for symbol in dict.fromkeys(found) if symbol not in NUMBERS]


def decode(numbers: Sequence[int]) -> str:
    """Return the text of symbols.

    >>> decode(encode("low:a=4;a?"))
    'low:a=4;a?'
    """
    return "".join(SYMBOLS[number] for number in numbers)


def said(numbers: Sequence[int]) -> str:
    """Return the text of symbols but for filling and the end, as the tokenizer does.

    >>> said([0, *encode("a=4<end>")])
    'a=4'
    """
    return decode([number for number in numbers if SYMBOLS[number] not in {PAD, END}])


def tokenizer(template: str) -> Any:
    """Return a tokenizer of the transformers library that does the same.

    A template, `WHOLE` or `FIRST`, says how it reads a conversation.
    """
    import tokenizers  # noqa: PLC0415 - an extra, as is the next
    import transformers  # noqa: PLC0415

    words = tokenizers.models.WordLevel(vocab=dict(NUMBERS), unk_token=PAD)
    made = tokenizers.Tokenizer(words)
    pattern = tokenizers.Regex(_WHOLE.pattern.replace(r"\<", "<").replace(r"\>", ">"))
    made.normalizer = tokenizers.normalizers.Replace(tokenizers.Regex(_NOT_READ), "")
    made.pre_tokenizer = tokenizers.pre_tokenizers.Split(pattern, behavior="isolated")
    made.decoder = tokenizers.decoders.Fuse()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token=END, pad_token=PAD, unk_token=PAD
    )
    fast.chat_template = template
    return fast
