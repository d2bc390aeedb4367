from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import InputError, TooFewTracesError
from farthing.traces.arrays import TraceArrays
from farthing.traces.copies import agreed_marks
from farthing.traces.splits import by_shares, divide, fixed_parts, named_parts


def questions(marks: list[int], incomplete: list[int] | None = None) -> TraceArrays:
    """Questions with these `split` marks; of the listed ones the last round was not recorded."""
    n = len(marks)
    recorded = np.full(n, 2, dtype=np.int16)
    recorded[incomplete or []] = 1
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)], dtype=np.str_),
        roles=("base",),
        models=("",),
        answer=np.zeros((n, 2, 1), dtype=np.int16),
        correct=np.ones((n, 2, 1), dtype=bool),
        cost_nano=np.ones((n, 2, 1), dtype=np.int64),
        signals={},
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.array(marks, dtype=np.int8),
        recorded=recorded,
        independent=np.ones(n, dtype=bool),
    )


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.slow
@settings(deadline=None)
@given(
    marks=st.lists(st.integers(-1, 2), min_size=1, max_size=60),
    truncated=st.sets(st.integers(0, 59)),
    seed=st.integers(0, 5),
    sizes=st.tuples(*[st.none() | st.integers(0, 30)] * 3),
)
def test_parts_never_overlap_and_have_the_sizes_that_they_say(
    marks: list[int], truncated: set[int], seed: int, sizes: tuple[int | None, ...]
) -> None:
    arrays = questions(marks, [i for i in truncated if i < len(marks)])
    asked = dict(zip(("train", "calibrate", "test"), sizes, strict=True))
    complete = set(np.flatnonzero(arrays.complete).tolist())
    marked = {i for i in complete if marks[i] == 0}
    try:
        division = divide(arrays, rng(seed), **asked)
    except TooFewTracesError:
        least = {part: 1 if size is None else size for part, size in asked.items()}
        pool, rest = (marked, complete - marked) if marked else (complete, complete)
        enough = least["train"] <= len(pool) and least["calibrate"] + least["test"] <= len(rest)
        enough &= bool(marked) or sum(least.values()) <= len(complete)
        assert not enough or min(least.values()) < 1 or not_even_a_share(len(complete), asked)
        return
    train, rest = set(division.train.tolist()), set(division.rest.tolist())
    assert len(train) == len(division.train)
    assert not train & rest
    assert train | rest <= complete
    assert train <= marked or not marked
    assert all(division.sizes[part] == size for part, size in asked.items() if size is not None)
    drawer = rng(seed + 1)
    for _ in range(3):
        calibrate, test = (set(rows.tolist()) for rows in division.redraw(drawer))
        assert (len(calibrate), len(test)) == (division.n_calibrate, division.n_test)
        assert not calibrate & test
        assert calibrate | test <= rest


def not_even_a_share(total: int, asked: dict[str, int | None]) -> bool:
    """Whether rounding leaves a part that was not asked for without a question."""
    left = total - sum(size or 0 for size in asked.values())
    return None in asked.values() and left < 10


def test_without_marks_the_shares_are_60_20_20() -> None:
    division = divide(questions([-1] * 1169), rng())
    assert division.sizes == {"train": 701, "calibrate": 234, "test": 234}
    assert str(division) == "701 to train, 234 to calibrate, 234 to test"


def test_the_marked_train_part_trains_and_the_rest_is_divided() -> None:
    marks = [0] * 285 + [2] * 1531
    division = divide(questions(marks), rng())
    assert division.train.tolist() == list(range(285))
    assert (division.n_calibrate, division.n_test) == (765, 766)
    smaller = divide(questions(marks), rng(), train=100, calibrate=200, test=200)
    assert len(smaller.train) == 100
    assert smaller.train.max() < 285
    assert len(smaller.rest) == 1531


def test_sizes_that_are_not_given_share_what_is_left() -> None:
    division = divide(questions([-1] * 1400), rng(), train=1000)
    assert division.sizes == {"train": 1000, "calibrate": 200, "test": 200}
    assert divide(questions([-1] * 500), rng(), calibrate=200, test=200).sizes["train"] == 100


def test_the_same_seed_trains_on_the_same_questions_whatever_is_drawn_later() -> None:
    arrays = questions([-1] * 300)
    first = divide(arrays, rng(3), train=100, calibrate=50, test=50)
    second = divide(arrays, rng(3), train=100)
    assert np.array_equal(first.train, second.train)
    assert not np.array_equal(first.train, divide(arrays, rng(4), train=100).train)
    assert np.array_equal(first.redraw(rng(1))[0], first.redraw(rng(1))[0])
    drawer = rng(1)
    assert not np.array_equal(first.redraw(drawer)[0], first.redraw(drawer)[0])


def test_every_question_of_the_rest_is_drawn_equally_often() -> None:
    division = divide(questions([-1] * 50), rng(), train=10, calibrate=10, test=10)
    drawer, draws = rng(1), 4000
    calibrated, tested = np.zeros(50), np.zeros(50)
    for _ in range(draws):
        calibrate, test = division.redraw(drawer)
        calibrated[calibrate] += 1
        tested[test] += 1
    five_deviations = 5 * np.sqrt(draws * 0.25 * 0.75)
    assert np.abs(calibrated[division.rest] - draws / 4).max() < five_deviations
    assert np.abs(tested[division.rest] - draws / 4).max() < five_deviations


@pytest.mark.parametrize("part", ["train", "calibrate", "test"])
@pytest.mark.parametrize("size", [-1, 0, 12])
def test_too_few_is_refused_with_the_numbers(part: str, size: int) -> None:
    with pytest.raises(TooFewTracesError, match=r"there are 10 complete questions \(2 incomplete"):
        divide(questions([-1] * 12, [0, 5]), rng(), **{part: size})


def test_the_refusal_says_what_was_asked_for() -> None:
    with pytest.raises(TooFewTracesError) as refused:
        divide(questions([-1] * 1169), rng(), train=1000, calibrate=200, test=200)
    assert str(refused.value) == (
        "asked for 1,000 to train and 200 to calibrate and 200 to test, at least 1 each; there are "
        "1,169 complete questions: ask for fewer or record more"
    )
    with pytest.raises(TooFewTracesError, match="5 of them marked to train"):
        divide(questions([0] * 5 + [2] * 100), rng(), train=6)


def test_incomplete_questions_are_left_out_and_counted() -> None:
    division = divide(questions([-1] * 100, [0, 7, 99]), rng())
    assert division.incomplete == 3
    assert not {0, 7, 99} & {*division.train.tolist(), *division.rest.tolist()}
    assert str(division).endswith("; 3 incomplete left out")


def test_a_file_that_marks_all_three_parts_is_taken_at_its_word() -> None:
    arrays = questions([0, 1, 2, 0, 1, 2, -1], [3])
    named = named_parts(arrays)
    assert named is not None
    assert named.train.tolist() == [0]
    assert named.calibrate.tolist() == [1, 4]
    assert named.test.tolist() == [2, 5]
    fixed = fixed_parts(arrays, rng())
    assert fixed.test.tolist() == [2, 5]


def test_without_all_three_marks_one_draw_is_kept() -> None:
    arrays = questions([0] * 20 + [2] * 40)
    assert named_parts(arrays) is None
    fixed = fixed_parts(arrays, rng(1), test=30)
    assert fixed.train.tolist() == list(range(20))
    assert (len(fixed.calibrate), len(fixed.test)) == (10, 30)
    assert not set(fixed.calibrate.tolist()) & set(fixed.test.tolist())
    again = fixed_parts(arrays, rng(1), test=30)
    assert np.array_equal(fixed.calibrate, again.calibrate)


SHARES = [Fraction(3, 10), Fraction(1, 2), Fraction(1, 5)]


@pytest.mark.slow
@settings(deadline=None)
@given(
    marks=st.lists(st.integers(-1, 2), min_size=1, max_size=60),
    parts=st.integers(1, 4),
    seed=st.integers(0, 5),
)
def test_shares_keep_to_the_marks(marks: list[int], parts: int, seed: int) -> None:
    shares = [Fraction(1, 4)] * parts
    found = [set(rows.tolist()) for rows in by_shares(questions(marks), shares, rng(seed))]
    assert len(found) == parts
    assert sum(map(len, found)) == len(set.union(*found))
    of = [{i for i, mark in enumerate(marks) if mark == part} for part in range(3)]
    if parts == 3 and all(of):
        assert found == of
    elif of[0]:
        rest = len(marks) - len(of[0])
        assert found[0] == of[0]
        assert [len(rows) for rows in found[1:]] == pytest.approx([rest / 3] * (parts - 1), abs=1)
    else:
        assert [len(rows) for rows in found] == pytest.approx([len(marks) / 4] * parts, abs=1)


def test_without_marks_shares_are_as_they_always_were() -> None:
    order = rng(7).permutation(1169)
    expected = [np.sort(rows) for rows in np.split(order, [350, 935, 1169])[:3]]
    for marks in ([-1] * 1169, [2] * 1000 + [1] * 169):  # nothing is marked to train
        for ours, theirs in zip(by_shares(questions(marks), SHARES, rng(7)), expected, strict=True):
            assert ours.tolist() == theirs.tolist()


def test_who_is_not_marked_to_train_is_shared_in_proportion() -> None:
    train, held_out, test = by_shares(questions([0] * 30 + [-1] * 70), SHARES, rng())
    assert train.tolist() == list(range(30))
    assert (len(held_out), len(test)) == (50, 20)
    assert [
        len(rows) for rows in by_shares(questions([0] * 30 + [-1] * 70), SHARES[:2], rng())
    ] == [
        30,
        50,
    ]  # what no share names is in no part, as ever
    assert [len(r) for r in by_shares(questions([0, 0, -1]), [Fraction(1)], rng())] == [2]


@pytest.mark.slow
@settings(deadline=None)
@given(
    content=st.lists(st.integers(0, 12), min_size=12, max_size=60),
    marks=st.lists(st.integers(-1, 2), min_size=60, max_size=60),
    truncated=st.sets(st.integers(0, 59)),
    seed=st.integers(0, 3),
)
def test_questions_that_ask_the_same_are_in_one_part(
    content: list[int], marks: list[int], truncated: set[int], seed: int
) -> None:
    """And all of them that were recorded in full are; what has no text, 0, is no copy."""
    n = len(content)
    arrays = questions(marks[:n], [i for i in truncated if i < n])
    arrays = replace(arrays, content=np.array(content, dtype=np.uint64))
    shares = [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]
    try:
        fixed = fixed_parts(arrays, rng(seed))
        shared = by_shares(arrays, shares, rng(seed))
        parted = divide(arrays, rng(seed))
    except TooFewTracesError:
        return
    except InputError:
        assert any(len({marks[i] for i in of} - {-1}) > 1 for of in alike(content))
        return
    calibrate, test = parted.redraw(rng(seed))
    for parts, rows in (
        ([fixed.train, fixed.calibrate, fixed.test], set(np.flatnonzero(arrays.complete).tolist())),
        (shared, set(range(n))),
        ([parted.train, calibrate, test], set()),
    ):
        for of in alike(content):
            where = [k for k, part in enumerate(parts) if set(part.tolist()) & of]
            assert len(where) <= 1
            if where and rows:
                assert of & rows <= set(parts[where[0]].tolist())
    for part in (calibrate, test, parted.rest):
        asked = [content[i] for i in part.tolist() if content[i]]
        assert len(set(asked)) == len(asked)


def alike(content: list[int]) -> list[set[int]]:
    """Return the rows of each text that several questions have."""
    found = [{i for i, one in enumerate(content) if one == mark} for mark in set(content) - {0}]
    return [of for of in found if len(of) > 1]


def test_sizes_are_of_distinct_questions() -> None:
    arrays = replace(questions([-1] * 30), content=np.arange(30, dtype=np.uint64) // 3 + 1)
    division = divide(arrays, rng(), train=5, calibrate=2, test=3)
    assert division.sizes == {"train": 5, "calibrate": 2, "test": 3}
    assert len(division.train) == 15
    assert str(division) == (
        "5 to train, 2 to calibrate, 3 to test (30 requests, 10 distinct questions)"
    )
    fixed = fixed_parts(arrays, rng(), train=5, calibrate=2, test=3)
    assert [len(part) for part in vars(fixed).values()] == [15, 6, 9]
    with pytest.raises(
        TooFewTracesError, match="there are 30 requests, 10 distinct questions: ask"
    ):
        divide(arrays, rng(), train=6, calibrate=2, test=3)
    assert [len(part) for part in by_shares(arrays, [Fraction(1, 2)] * 2, rng())] == [15, 15]


@pytest.mark.parametrize("known", [0, 1])
def test_where_all_are_distinct_nothing_changes(known: int) -> None:
    """As it was drawn before copies were known of: rows themselves are permuted."""
    arrays = questions([-1] * 50)
    arrays = replace(arrays, content=known * np.arange(50, 0, -1).astype(np.uint64))
    drawer = rng(4)
    order = drawer.permutation(50)
    rest = np.sort(order[30:])
    again = drawer.permutation(rest)
    found = fixed_parts(arrays, rng(4))
    assert found.train.tolist() == sorted(order[:30])
    assert found.calibrate.tolist() == sorted(again[:10])
    assert found.test.tolist() == sorted(again[10:])
    first, second = by_shares(arrays, [Fraction(1, 5), Fraction(4, 5)], rng(4))
    assert first.tolist() == sorted(order[:10])
    assert second.tolist() == sorted(order[10:])


def test_a_copy_without_a_mark_follows_and_of_two_marks_the_first_part_counts() -> None:
    """MMLU's recording has a test question that asks the same as one to train: it trains."""
    content = np.array([3, 3, 5, 5, 0, 0], dtype=np.uint64)
    marks = np.array([-1, 0, 1, -1, 0, 2], dtype=np.int8)
    assert agreed_marks(marks, content).tolist() == [0, 0, 1, 1, 0, 2]
    apart = replace(questions([1, 0, 1, 2, 0, 2]), content=content)
    for split in (apart.split, apart.split[[1, 0, 3, 2, 4, 5]]):
        named = named_parts(replace(apart, split=split))
        assert named is not None
        assert [part.tolist() for part in vars(named).values()] == [[0, 1, 4], [2, 3], [5]]
    named = named_parts(replace(apart, split=marks))
    assert named is not None
    assert [part.tolist() for part in vars(named).values()] == [[0, 1, 4], [2, 3], [5]]
