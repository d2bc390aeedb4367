"""Pieces put together are the whole."""

from dataclasses import replace

import numpy as np
import pytest

from farthing.traces.arrays import PolicyReplies, joined
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing.traces.fingerprint import fingerprint
from farthing.traces.pool import cascade
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset


def test_pieces_in_their_order_are_the_whole() -> None:
    rng = np.random.default_rng(0)
    traces = generate(preset("hotpotqa-llama2-7b").config, 50, rng)
    action = rng.integers(-1, 3, (50, 4)).astype(np.int8)
    largest = traces.cost_nano + rng.integers(0, 99, traces.cost_nano.shape)
    assert not traces.largest_cost_nano.any()
    old = fingerprint(traces)
    traces = replace(traces, largest_cost_nano=largest)
    assert fingerprint(traces) != old
    with pytest.raises(ValueError, match=r"shape \(50, 2, 2\), not \(50, 4, 2\)"):
        replace(traces, largest_cost_nano=largest[:, :2])
    traces = replace(
        traces, replies={"exit-guide": PolicyReplies(action, rng.integers(0, 99, (50, 4)))}
    )
    pieces = [traces.rows(slice(*ends)) for ends in ((0, 20), (20, 20), (20, 49), (49, 50))]
    assert fingerprint(joined(pieces)) == fingerprint(traces)
    assert fingerprint(joined(pieces[::-1])) != fingerprint(traces)
    odd = np.arange(1, 50, 2)
    assert (traces.take(odd).largest_cost_nano == largest[odd]).all()
    assert (joined(pieces).largest_cost_nano == largest).all()
    assert joined([traces]) is traces


def test_the_text_of_questions_stays_with_them() -> None:
    """One after another, one by one, put together again, and as a cascade; no mark tells of it."""
    names = ["b", "a", "c", "d"]
    calls = [Call(round=1, role=role, answer="x", cost_usd=0.1) for role in ("large", "small")]
    texts = {name: f"What is {name}?" for name in names}
    records = [Trace(id=name, question=texts[name], gold=["x"], calls=calls) for name in names]
    traces = assemble(records)
    bare = replace(traces, question=None)
    assert fingerprint(traces) == fingerprint(bare)
    pieces = [traces.rows(slice(0, 3)), traces.rows(slice(3, 4))]
    picked = traces.take(np.array([2, 0]))
    masked = traces.take(np.array([False, True, False, True]))
    for changed in (traces, joined(pieces), *pieces, picked, masked, cascade(traces)):
        assert changed.question is not None
        assert changed.question.tolist() == [texts[name] for name in changed.ids.tolist()]
    assert bare.take(np.array([2, 0])).question is None
    assert joined([bare, bare]).question is None
    for mixed in ([pieces[0], bare.rows(slice(3, 4))], [bare.rows(slice(0, 3)), pieces[1]]):
        known = [
            text
            for one in mixed
            for text in ([""] * len(one) if one.question is None else one.question)
        ]
        assert joined(mixed).question.tolist() == known  # type: ignore[union-attr]
