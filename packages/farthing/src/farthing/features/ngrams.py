"""Texts as counts of their character n-grams, hashed, with nothing but numpy.

As scikit-learn's `HashingVectorizer(analyzer="char", ngram_range=(2, 5))` followed by
`TfidfTransformer(sublinear_tf=True)`, but for the hash, which numpy computes for all n-grams of a
text at once.
"""

import numpy as np

from farthing.traces.arrays import FloatArray, IntArray

BITS = 14
DIMENSIONS = 1 << BITS
LENGTHS = range(2, 6)
"""Characters of an n-gram."""
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Of Fibonacci hashing: 2^64 over the golden ratio."""
_SHIFT = np.uint64(29)


def ngram_counts(text: str) -> tuple[IntArray, FloatArray]:
    """Return the places of a text's n-grams, [k] in ascending order, and 1 + log of their counts.

    Case and repeated blanks do not matter; n-grams that share a place are counted together.

    >>> places, weight = ngram_counts("Rhine  Rhine")
    >>> len(places) == len(set(places)), bool(weight.max() > 1 == weight.min())
    (True, True)
    """
    characters = np.frombuffer(" ".join(text.lower().split()).encode("utf-32-le"), dtype=np.uint32)
    found = [_hashed(characters.astype(np.uint64), length) for length in LENGTHS]
    counts = np.bincount(np.concatenate(found), minlength=DIMENSIONS)
    places = np.flatnonzero(counts)
    return places, 1 + np.log(counts[places])


def _hashed(characters: IntArray, length: int) -> IntArray:
    n = max(len(characters) - length + 1, 0)
    code: IntArray = np.full(n, length, dtype=np.uint64)
    for offset in range(length):
        code = (code ^ characters[offset : offset + n]) * _FACTOR
        code ^= code >> _SHIFT
    return (code >> np.uint64(64 - BITS)).astype(np.int64)
