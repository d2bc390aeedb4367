"""What makes two questions one: typing does not count, nor does gold; a cluster does."""

import numpy as np
import pytest
from msgspec.structs import replace as replaced

import farthing as ft
from farthing.errors import InputError
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing.traces.copies import canonical, content_of, contents_of, contradiction, n_distinct
from farthing.traces.files import join
from farthing.traces.fingerprint import fingerprint

CALLS = [Call(round=1, role=role, answer="4") for role in ("small", "large")]
HAMLET = Trace(id="a", question='Who wrote "Hamlet"?', gold=["Shakespeare", "Bard"], calls=CALLS)


@pytest.mark.parametrize(
    "text",
    [
        'Who wrote "Hamlet"? ',
        '\n who  wrote\t"hamlet"',
        'WHO WROTE "HAMLET"?!',
        "Who wrote “Hamlet”?",
        'Who\u00a0wrote "Ham\u00adlet"\u200b?',
        'Ｗｈｏ wrote "Hamlet"？',
        '- Who wrote "Hamlet"...',
        '¿Who wrote "Hamlet"?',
    ],
)
def test_typing_does_not_count(text: str) -> None:
    assert content_of(replaced(HAMLET, question=text)) == content_of(HAMLET)
    beside = replaced(HAMLET, question="Which?", options=text)
    assert content_of(beside) == content_of(replaced(beside, options=HAMLET.question))


def test_composed_and_decomposed_letters_are_the_same() -> None:
    assert canonical("Was ist ein Caf\u00e9?") == canonical("was ist ein cafe\u0301")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is 5?", "What is -5?"),
        ("-5 + 3", "5 + 3"),
        (".5", "5"),
        ("What is 5!", "What is 5?"),
        ("What is 2³?", "What is 23?"),
        ("What is C#?", "What is C?"),
        ("What is 10%?", "What is 10?"),
        ("a b", "ab"),
        ("a, b", "a b"),
        ("3+4", "3-4"),
        ("?", "!!!"),
        ("...", "?"),
    ],
)
def test_what_stands_within_counts_and_so_do_signs_of_numbers(one: str, other: str) -> None:
    marks = [content_of(replaced(HAMLET, question=text)) for text in (one, other)]
    assert marks[0] != marks[1]
    assert 0 not in marks


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u200b"])
def test_no_text_is_never_a_copy(text: str) -> None:
    assert content_of(replaced(HAMLET, question=text)) == 0


def test_gold_does_not_count_and_what_stands_beside_does() -> None:
    for gold in ([], ["Goethe"], ["Bard", "Shakespeare"]):
        assert content_of(replaced(HAMLET, gold=gold)) == content_of(HAMLET)
    for beside in ({"options": "A"}, {"history": "Hi"}, {"system_prompt": "Be brief."}):
        assert content_of(replaced(HAMLET, **beside)) != content_of(HAMLET)


def test_punctuation_without_end_takes_no_time() -> None:
    assert canonical("." * 300_000 + "a" + "?" * 300_000) == "a"


def named(*about: tuple[str, str | None]) -> list[Trace]:
    return [
        Trace(id=f"q{i}", question=text, cluster=cluster, calls=CALLS)
        for i, (text, cluster) in enumerate(about)
    ]


def test_a_cluster_joins_whatever_its_texts_are() -> None:
    traces = named(("one", "x"), ("two", "x"), ("", "x"), ("three", None), ("four", "y"))
    marks = contents_of(traces)
    assert len(set(marks[:3].tolist())) == 1
    assert n_distinct(marks) == 3
    assert marks[3] == content_of(traces[3])


def test_a_cluster_parts_nothing() -> None:
    """Against connected parts of the graph of texts and clusters, by brute force."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(2, 12))
        texts, clusters = rng.integers(0, 6, n), rng.integers(0, 6, n)
        traces = named(
            *(
                (f"t{t}" if t else "", f"c{c}" if c else None)
                for t, c in zip(texts, clusters, strict=True)
            )
        )
        same = (texts[:, None] == texts) & (texts[:, None] > 0)
        same |= (clusters[:, None] == clusters) & (clusters[:, None] > 0) | np.eye(n, dtype=bool)
        for _ in range(n):
            same = (same.astype(int) @ same) > 0
        marks = contents_of(traces)
        found = (marks[:, None] == marks) & (marks[:, None] > 0) | np.eye(n, dtype=bool)
        assert (found == same).all()


def test_a_fingerprint_knows_neither_wording_nor_cluster() -> None:
    plain = named(("one", None), ("two", None))
    assert fingerprint(assemble(named(("One?", "x"), ("two", "x")))) == fingerprint(assemble(plain))


def test_copies_with_other_accepted_answers_are_counted() -> None:
    golds: tuple[list[str], ...] = (["4"], ["5"], ["4", "four"], [], ["six"])
    traces = [
        replaced(HAMLET, id=f"q{i}", question="2 + 2" + "?" * i, gold=gold)
        for i, gold in enumerate(golds)
    ]
    said = contradiction(assemble(traces), traces)
    assert "other accepted answers under another id: 2 (first 'q0' and 'q1'); a proof" in said
    assert contradiction(assemble(traces[2:4]), traces[2:4]) == ""
    clustered = [replaced(one, question=f"{one.id}?", cluster="x") for one in traces]
    assert contradiction(assemble(clustered), clustered) == ""


def test_python_warns_of_other_accepted_answers() -> None:
    calls = [{"round": 1, "role": role, "answer": role, "cost_usd": 0.1} for role in ("a", "b")]
    other = [{**call, "cost_usd": 0.2} for call in calls]
    asked = {"x": ("2 + 2?", ["4"], calls), "y": ("2 + 2", ["5"], other)}
    records = [
        {"id": name, "question": text, "gold": gold, "calls": made}
        for name, (text, gold, made) in asked.items()
    ]
    with pytest.warns(UserWarning, match="other accepted answers under another id: 1 "):
        ft.from_records(records)


def test_two_files_may_not_name_other_clusters() -> None:
    one, other = (replaced(HAMLET, calls=[call]) for call in CALLS)
    (joined,) = join({"a": [replaced(one, cluster="x")], "b": [other]})
    assert joined.cluster == "x"
    with pytest.raises(InputError, match="cluster is 'x' in the one and 'y' in the other"):
        join({"a": [replaced(one, cluster="x")], "b": [replaced(other, cluster="y")]})
