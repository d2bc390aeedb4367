"""The tokenizer of a folder of weights whose symbols are its tokens, without another library.

It reads the `tokenizer.json` that the `tokenizers` library writes, where that has a `WordLevel`
vocabulary, a pattern that splits a text into its symbols, and one of what is not read.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2.sandbox import ImmutableSandboxedEnvironment


@dataclass(frozen=True)
class SymbolTokenizer:
    """Reads and writes symbols by their numbers."""

    numbers: Mapping[str, int]
    unknown: int
    """The number of what is no symbol."""
    special: frozenset[int]
    """Numbers that `decode` can leave out: filling, and the end."""
    eos_token_id: int
    chat_template: str
    symbol: re.Pattern[str]
    not_read: re.Pattern[str]

    @classmethod
    def read(cls, folder: Path) -> "SymbolTokenizer":
        """Read the tokenizer of a folder of weights.

        Raises:
            ValueError: it is of another kind.
        """
        told: Any = json.loads(folder.joinpath("tokenizer.json").read_text(encoding="utf-8"))
        names = json.loads(folder.joinpath("tokenizer_config.json").read_text(encoding="utf-8"))
        template = folder.joinpath("chat_template.jinja").read_text(encoding="utf-8")
        try:
            numbers = told["model"]["vocab"]
            return cls(
                numbers=numbers,
                unknown=numbers[told["model"]["unk_token"]],
                special=frozenset(each["id"] for each in told["added_tokens"] if each["special"]),
                eos_token_id=numbers[names["eos_token"]],
                chat_template=template,
                symbol=re.compile(told["pre_tokenizer"]["pattern"]["Regex"]),
                not_read=re.compile(told["normalizer"]["pattern"]["Regex"]),
            )
        except (KeyError, TypeError) as lacking:
            problem = f"{folder}/tokenizer.json: no tokenizer of symbols (it lacks {lacking})"
            raise ValueError(problem) from None

    def apply_chat_template(
        self, messages: Sequence[Mapping[str, str]], **_: bool
    ) -> dict[str, list[int]]:
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        text = environment.from_string(self.chat_template).render(messages=messages)
        return {"input_ids": self.encode(text)}

    def encode(self, text: str, **_: bool) -> list[int]:
        read = self.not_read.sub("", text)
        return [self.numbers.get(symbol, self.unknown) for symbol in self.symbol.findall(read)]

    def get_vocab(self) -> Mapping[str, int]:
        return self.numbers

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        left_out: frozenset[int] = self.special if skip_special_tokens else frozenset()
        return "".join(self._symbols[number] for number in ids if number not in left_out)

    @cached_property
    def _symbols(self) -> dict[int, str]:
        return {number: symbol for symbol, number in self.numbers.items()}


def is_of_symbols(folder: Path) -> bool:
    """Return whether a folder's tokenizer is one of symbols."""
    try:
        told: Any = json.loads(folder.joinpath("tokenizer.json").read_text(encoding="utf-8"))
        return bool(told["model"]["type"] == "WordLevel" and told["normalizer"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
