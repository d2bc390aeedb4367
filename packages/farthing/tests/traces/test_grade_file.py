"""Grades beside traces: only added, whole or not at all, and refused where they make no sense."""

from pathlib import Path

import numpy as np
import pytest

from farthing.errors import InputError, TraceFormatError
from farthing.traces import splits as lots
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing.traces.grades.codes import AnswerTexts
from farthing.traces.grades.grade_file import (
    GoldGrade,
    GradeLine,
    GradeTable,
    Pairs,
    QuestionDraw,
    Right,
    Same,
    add_grades,
    plan_of,
    read_grade_table,
    read_grades,
)
from farthing.traces.grades.overlay import (
    apply_grades,
    as_judged,
    judged_same,
    recorded_marks,
)

RECORDS = [
    Trace(
        id=name,
        calls=[
            Call(round=1, role=role, answer=said, correct=right, cost_usd=cost)
            for role, said, right, cost in rows
        ],
    )
    for name, rows in (
        ("q1", [("mini", "Paris.", None, 0.1), ("large", "paris", None, 1.0)]),
        ("q2", [("mini", "4", False, 0.1), ("large", "5", None, 1.0)]),
        ("q3", [("mini", None, None, 0.1), ("large", "on the sea", None, 1.0)]),
    )
]
TRACES = assemble(RECORDS)
WORDINGS = AnswerTexts.of(RECORDS, TRACES)
ALL: list[GradeLine] = [
    QuestionDraw(seed=3, probability=0.25, judge="mini"),
    Pairs(seed=3, number=119, judge="mini"),
    Right(id="q1", answer="PARIS", right=True, probability=0.25),
    GoldGrade(id="q2", gold=["5", "five"]),
    Right(id="q3", answer="on the sea", right=False, judge="mini"),
    Same(id="q2", answer="4", reference="large", same=True, judge="mini"),
]


def test_what_is_added_is_read_again_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "x.grades.jsonl"
    assert read_grades(path) == []
    for line in ALL:
        add_grades(path, [line])
    assert read_grades(path) == ALL
    assert plan_of(ALL, QuestionDraw) == ALL[0]
    assert plan_of(ALL[2:], Pairs) is None


def test_a_line_that_a_crash_cut_off_is_left_out_and_then_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x.grades.jsonl"
    add_grades(path, ALL[:3])
    whole = path.read_bytes()
    for cut in range(1, 60):
        path.write_bytes(whole[:-cut])
        assert read_grades(path) == ALL[:2]
        add_grades(path, [ALL[3]])
        assert read_grades(path) == [*ALL[:2], ALL[3]]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"kind":"right","id":"q1"}', "line 1, line: object missing required field `answer`"),
        ('{"kind":"wrong","id":"q1"}', "line 1, kind: invalid value 'wrong'"),
        ('{"kind":"right","id":"q1","answer":"a","right":1}', "right: must be true or false"),
        ('{"kind":"gold","id":"q1","gold":[]}', "gold: must not be empty"),
        ("Paris", "is no JSON"),
    ],
)
def test_a_line_that_is_none_is_refused(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "x.grades.jsonl"
    path.write_text(f"{line}\n")
    with pytest.raises(TraceFormatError, match=says):
        read_grades(path)


def test_two_draws_in_one_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.grades.jsonl"
    add_grades(path, [QuestionDraw(seed=0, probability=0.5), QuestionDraw(seed=1, probability=0.5)])
    with pytest.raises(TraceFormatError, match="drawn in two ways"):
        read_grades(path)


def test_a_person_s_grades_go_on_top_of_what_was_recorded() -> None:
    graded = apply_grades(TRACES, WORDINGS, ALL)
    roles = graded.roles
    assert roles == ("mini", "large")
    assert graded.correct[:, 0].tolist() == [[True, True], [False, True], [False, False]]
    assert graded.ungraded[:, 0].tolist() == [[False, False], [False, False], [False, True]]
    again = apply_grades(TRACES, WORDINGS, [*ALL, Right(id="q1", answer="Paris", right=False)])
    assert again.correct[0, 0].tolist() == [False, False]


def test_a_judge_s_grades_are_never_the_truth_and_its_first_word_counts() -> None:
    judged = as_judged(TRACES, WORDINGS, ALL, "mini")
    assert not judged.correct.any()
    assert judged.ungraded[:, 0].tolist() == [[True, True], [True, True], [False, False]]
    other = Right(id="q3", answer="on the sea", right=True, judge="mini")
    assert not as_judged(TRACES, WORDINGS, [*ALL, other], "mini").correct.any()
    assert as_judged(TRACES, WORDINGS, [other, *ALL], "mini").correct[2, 0, 1]
    same = judged_same(TRACES, WORDINGS, ALL, ("large", "mini"))
    assert same[:, 0].tolist() == [[-1, -1], [1, -1], [-1, -1]]
    assert (judged_same(TRACES, WORDINGS, ALL, ("large", None)) == -1).all()


def test_marks_say_what_is_known_of_each_distinct_answer() -> None:
    assert recorded_marks(TRACES, 2).tolist() == [[-1, -1], [-1, 0], [-1, -1]]
    graded = apply_grades(TRACES, WORDINGS, ALL)
    assert recorded_marks(graded, 2).tolist() == [[1, -1], [1, 0], [-1, -1]]


def test_grades_of_nothing_that_was_recorded_are_refused() -> None:
    with pytest.raises(InputError, match="no question 'q9'"):
        apply_grades(TRACES, WORDINGS, [GoldGrade(id="q9", gold=["4"])])
    with pytest.raises(InputError, match="nobody answered 'Rome' to the question 'q1'"):
        apply_grades(TRACES, WORDINGS, [Right(id="q1", answer="Rome", right=True)])


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_table_of_grades_names_answers_or_roles_or_gold(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"mine{suffix}"
    if suffix == ".csv":
        path.write_text("id,role,answer,right,gold\nq1,mini,,yes,\nq2,,5,FALSE,\nq3,,,,the sea\n")
    else:
        path.write_text(
            '{"id":"q1","role":"mini","right":true}\n\n{"id":"q2","answer":"5","right":false}\n'
            '{"id":"q3","gold":["the sea"]}\n'
        )
    assert read_grade_table(path, GradeTable(TRACES, WORDINGS, drawn={"q1": 0.5})) == [
        Right(id="q1", answer="Paris.", right=True, probability=0.5),
        Right(id="q2", answer="5", right=False),
        GoldGrade(id="q3", gold=["the sea"]),
    ]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (
            "id,answer,right\nq1,Paris,maybe\n",
            "line 2, row: says 'maybe' in place of true or false",
        ),
        ("id,answer,right\nq1,Rome,yes\n", "nobody answered 'Rome'"),
        ("id,role,right\nq1,guide,yes\n", "one of mini, large"),
        ("id,role,right\nq3,mini,yes\n", "mini gave no answer to 'q3'"),
        ("id,wrong\nq1,yes\n", "'wrong' is no column of grades; give a row each: id and gold"),
        ("id,answer,same\nq2,4,yes\n", "name it"),
        ("id,answer,right\n", "holds no grades; give a row each: id and gold"),
    ],
)
def test_a_row_that_says_nothing_is_named(tmp_path: Path, row: str, says: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(row)
    with pytest.raises(TraceFormatError, match=says):
        read_grade_table(path, GradeTable(TRACES, WORDINGS))


def test_a_draw_follows_from_seed_and_id_alone_and_is_as_frequent_as_said() -> None:
    ids = np.array([f"q{i}" for i in range(20_000)])
    drawn = lots.sample_ids(ids, 0, 0.2)
    assert abs(drawn.mean() - 0.2) < 0.01
    assert (lots.sample_ids(ids[::-1], 0, 0.2)[::-1] == drawn).all()
    assert (lots.sample_ids(ids, 0, 0.4) >= drawn).all()
    assert abs((drawn & lots.sample_ids(ids, 1, 0.2)).mean() - 0.04) < 0.01
    order = lots.order(ids, 0)
    assert sorted(order.tolist()) == list(range(20_000))
    assert abs(np.corrcoef(order.argsort(), drawn)[0, 1]) < 0.03  # who is first is no sooner drawn
    assert lots.sample_ids(ids, 0, 1.0).all()
