import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.process.operating_points import of_calls
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing_lab.methods.bayesian_judges import sweep


def random_pool(rng: np.random.Generator, n: int, n_models: int) -> TraceArrays:
    answer = rng.integers(NO_ANSWER, 3, size=(n, 1, n_models)).astype(np.int16)
    return TraceArrays(
        ids=np.arange(n).astype(np.str_),
        roles=tuple("abcdef"[:n_models]),
        models=tuple("abcdef"[:n_models]),
        answer=answer,
        correct=answer == 0,
        cost_nano=rng.integers(0, 50, size=answer.shape),
        signals={},
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.full(n, -1, dtype=np.int8),
        recorded=np.ones(n, dtype=np.int16),
        independent=np.ones(n, dtype=bool),
    )


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**20), n_models=st.integers(1, 5))
def test_a_sweep_is_a_walk_along_the_order(seed: int, n_models: int) -> None:
    rng = np.random.default_rng(seed)
    traces = random_pool(rng, 12, n_models)
    length = int(rng.integers(1, n_models + 1))
    order = np.stack([rng.permutation(n_models)[:length] for _ in range(12)])
    score = rng.integers(0, 4, (12, length)) / 4
    chosen = rng.integers(-1, n_models, (12, length))
    knobs = np.array([0.0, 0.3, 0.5, np.inf])
    menu = sweep(traces, order, score, chosen, knobs)
    for i in range(12):
        for g, knob in enumerate(knobs):
            paid, covered, step = 0, False, 0
            while True:
                model = order[i, step]
                paid += int(traces.cost_nano[i, 0, model])
                covered |= bool(traces.correct[i, 0, model])
                if score[i, step] >= knob or step == length - 1:
                    break
                step += 1
            who = chosen[i, step]
            assert menu.cost_nano[i, g] == paid
            assert menu.covered[i, g] == covered
            assert menu.answered[i, g] == (who >= 0 and traces.answer[i, 0, who] != NO_ANSWER)
            assert menu.correct[i, g] == (who >= 0 and traces.correct[i, 0, who])
    assert (np.diff(menu.cost_nano, axis=1) >= 0).all()


def test_questions_and_settings_are_taken_and_sets_are_covered() -> None:
    rng = np.random.default_rng(0)
    traces = random_pool(rng, 20, 3)
    made = rng.random((20, 9, 3)) < 0.5
    menu = of_calls(traces, np.arange(9.0), made, np.full((20, 9), -1))
    assert not menu.correct.any()
    assert not menu.answered.any()
    np.testing.assert_array_equal(menu.as_sets().correct, menu.covered)
    part = menu.take(np.array([4, 2]))
    assert len(part) == 2
    np.testing.assert_array_equal(part.cost_nano[1], menu.cost_nano[2])
    few = menu.keep(np.array([0, 4, 8]))
    assert few.values.tolist() == [0, 4, 8]
    np.testing.assert_array_equal(few.cost_nano, menu.cost_nano[:, [0, 4, 8]])
