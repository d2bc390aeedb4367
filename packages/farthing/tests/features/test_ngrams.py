"""Counts of character n-grams, against scikit-learn's, whose places are other ones."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from farthing.features.ngrams import DIMENSIONS, ngram_counts

TEXTS = st.text(max_size=60) | st.text(alphabet="abé 東", max_size=60)


def counted(text: str) -> Counter[str]:
    split = CountVectorizer(analyzer="char", ngram_range=(2, 5)).build_analyzer()
    return Counter(split(" ".join(text.lower().split())))


@pytest.mark.slow
@given(TEXTS)
@settings(deadline=None, max_examples=200)
def test_every_ngram_counts_once_for_each_time_that_it_occurs(text: str) -> None:
    """Those that share a place are counted together."""
    places, weight = ngram_counts(text)
    expected = counted(text)
    counts = np.rint(np.exp(weight - 1)).astype(int)
    assert counts.sum() == expected.total()
    assert len(places) <= len(expected)
    assert places.tolist() == sorted(set(places.tolist()))
    assert ((places >= 0) & (places < DIMENSIONS)).all()
    if len(places) == len(expected):
        assert sorted(counts.tolist()) == sorted(expected.values())


def test_few_ngrams_of_a_long_text_share_a_place() -> None:
    """As few as chance would make: with so many places for k of them about k^2 / 2 places."""
    text = " ".join(str(i) for i in range(400))
    k, found = len(counted(text)), len(ngram_counts(text)[0])
    by_chance = DIMENSIONS * (1 - (1 - 1 / DIMENSIONS) ** k)
    assert abs(found - by_chance) < 5 * np.sqrt(k)


def test_case_and_blanks_do_not_matter_and_all_else_does() -> None:
    one, other = ngram_counts("The  Rhine\n"), ngram_counts("the rhine")
    assert one[0].tolist() == other[0].tolist()
    assert one[1].tolist() == other[1].tolist()
    assert ngram_counts("the rhino")[0].tolist() != other[0].tolist()
    assert [len(part) for part in ngram_counts("")] == [0, 0]
    assert len(ngram_counts("a")[0]) == 0
