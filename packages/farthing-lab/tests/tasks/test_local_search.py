"""BM25 over paragraphs, against the formula itself."""

import asyncio
import json
import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import InputError, MissingExtraError, QuestionFormatError
from farthing.tasks.base import Question
from farthing_lab.tasks.local_search import LocalSearch, own_paragraphs, read_corpus

NOTHING = "Nothing was found; try other words."
PARAGRAPHS = [
    ("Lisbon", "Lisbon is the capital of Portugal."),
    ("Porto", "Porto is a city in Portugal, north of Lisbon."),
    ("Oslo", "Oslo is the capital of Norway."),
    ("X", "A short one."),
]


def found(tool: LocalSearch, query: str) -> list[str]:
    return asyncio.run(tool.run(query)).text.split("\n")


def bm25(
    documents: list[list[str]], query: set[str], k1: float = 1.5, b: float = 0.75
) -> list[float]:
    """Score by Lucene's BM25, written from its definition."""
    mean = sum(map(len, documents)) / len(documents)
    scores = []
    for document in documents:
        counts, score = Counter(document), 0.0
        for word in query:
            having = sum(word in other for other in documents)
            idf = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
            tf = counts[word]
            score += idf * tf / (tf + k1 * (1 - b + b * len(document) / mean))
        scores.append(score)
    return scores


WORDS = st.sampled_from(["river", "castle", "x", "7", "bridge", "north"])


@settings(deadline=None, max_examples=40)
@given(
    documents=st.lists(st.lists(WORDS, min_size=1, max_size=6), min_size=1, max_size=6),
    query=st.sets(WORDS, min_size=1, max_size=3),
)
def test_the_best_paragraphs_are_bm25s(documents: list[list[str]], query: set[str]) -> None:
    tool = LocalSearch([(f"t{i}", " ".join(words)) for i, words in enumerate(documents)], top=2)
    scores = bm25([[f"t{i}", *words] for i, words in enumerate(documents)], query)
    best = [score for score in sorted(scores, reverse=True)[:2] if score > 0]
    lines = found(tool, " ".join(sorted(query)))
    if not best:
        assert lines == [NOTHING]
    else:
        got = [scores[int(line.split(":")[0].removeprefix("t"))] for line in lines]
        assert got == pytest.approx(best, rel=1e-5)


def test_the_title_is_searched_too_and_case_does_not_matter() -> None:
    tool = LocalSearch(PARAGRAPHS)
    assert found(tool, "NORWAY") == ["Oslo: Oslo is the capital of Norway."]
    assert found(tool, "x") == ["X: A short one."]


@pytest.mark.parametrize("query", ["", "   ", "the of", "zebra", "!!!", "\0"])
def test_what_is_not_there_is_a_reply_that_says_so(query: str) -> None:
    assert found(LocalSearch(PARAGRAPHS), query) == [NOTHING]


def test_a_use_costs_money_and_time() -> None:
    reply = asyncio.run(LocalSearch(PARAGRAPHS, cost_nano=1_000).run("zebra"))
    assert reply.cost_nano == 1_000
    assert reply.latency_s > 0


def test_many_searches_at_once_do_not_mix() -> None:
    tool = LocalSearch([(f"t{i}", f"word{i}") for i in range(200)], top=1)

    async def all_at_once() -> list[str]:
        replies = await asyncio.gather(*(tool.run(f"word{i}") for i in range(200)))
        return [reply.text for reply in replies]

    assert asyncio.run(all_at_once()) == [f"t{i}: word{i}" for i in range(200)]


@pytest.mark.parametrize("paragraphs", [[], [("", " ")], [("!", "?")]])
def test_nothing_to_search_in_is_refused(paragraphs: list[tuple[str, str]]) -> None:
    with pytest.raises(InputError, match="nothing to search in"):
        LocalSearch(paragraphs)


def test_a_corpus_file(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    rows = [{"title": title, "text": text, "id": 3} for title, text in PARAGRAPHS]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    assert read_corpus(path) == PARAGRAPHS
    path.write_text('{"title": "Lisbon"}')
    with pytest.raises(QuestionFormatError, match="line 1, text: is missing"):
        read_corpus(path)


def test_a_questions_own_paragraphs_are_its_toolbox() -> None:
    toolbox = own_paragraphs(top=1, cost_nano=7)
    assert toolbox(Question("q", "?")) == ()
    (tool,) = toolbox(Question("q", "?", paragraphs=tuple(PARAGRAPHS)))
    reply = asyncio.run(tool.run("Norway"))
    assert (reply.text, reply.cost_nano) == ("Oslo: Oslo is the capital of Norway.", 7)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "bm25s", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[search\]"):
        LocalSearch(PARAGRAPHS)
