"""The page of a recommendation: money first, then the figure, the promise and what was tried."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from made_up_pool import pool
from msgspec import structs

from farthing.errors import InputError
from farthing.methods.base import Dataset
from farthing.methods.cards import card
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.coverage import Coverage
from farthing.promises.kinds.parity import Parity
from farthing.recommendation import candidates
from farthing.recommendation.recommend import recommend
from farthing.recommendation.record import Recommendation
from farthing.reports import recommendation_page

HOSTILE = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def found() -> Recommendation:
    with pytest.MonkeyPatch.context() as patch:
        names = ("evidence-cascade", "pool-gain")
        patch.setattr(candidates, "cards", lambda: [card(name) for name in names])
        return recommend(Dataset("made up", pool(700)), Parity("large", "0.05"))


def words(page: str) -> str:
    body = re.sub(r"<svg.*?</svg>", "[figure]", page.partition("<body>")[2], flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", body).replace("&#39;", "'").split())


@pytest.mark.slow
def test_it_says_in_order_what_is_paid_what_is_promised_and_what_was_tried(
    found: Recommendation,
) -> None:
    said = words(recommendation_page.html(found, "log.jsonl"))
    value, certificate = found.found.value, found.certificate
    assert certificate is not None
    in_order = (
        f"log.jsonl Use {found.name} and save {100 * (value.saved or 0):.0f} % Today large alone",
        "$2.00 per 1,000 questions",
        f"Tomorrow {found.name} $",
        f"Saved {100 * (value.saved or 0):.1f} % 95 % interval",
        "[figure] large, at the origin,",
        f"What is promised {certificate.plain_language()}",
        "It ends when The kind or mix of questions changes.",
        "What 1,000 questions cost",
        "small alone",
        "What was tried",
        found.trials[1].name,
        f"The promise, exactly {certificate.sentence()}",
    )
    places = [said.find(part) for part in in_order]
    assert -1 not in places, in_order[places.index(-1)]
    assert places == sorted(places)
    for word in ("operating point", "dear", "fell back"):
        assert word not in said.partition("The promise, exactly")[0].lower()


def test_names_from_traces_are_escaped_and_nothing_runs(found: Recommendation) -> None:
    models = {f"{name}{HOSTILE}": each for name, each in found.models.items()}
    hostile = replace(
        found,
        models=models,
        reference=f"large{HOSTILE}",
        tradeoffs=tuple(
            structs.replace(each, method=f"{each.method}{HOSTILE}") for each in found.tradeoffs
        ),
    )
    page = recommendation_page.html(hostile, HOSTILE)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") > 5
    assert not re.search(r"(src|href)=\"(?!#)", page)


@pytest.mark.slow
def test_where_nothing_is_proved_it_says_so() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "cards", lambda: [card("pool-gain")])
        nothing = recommend(Dataset("made up", pool(700)), Agreement("large", "0.001"))
    said = words(recommendation_page.html(nothing, "log"))
    assert "No saving is proved; keep asking large Today large alone" in said
    assert "Tomorrow No winner large answers every question, as today. Saved 0.0 %" in said


@pytest.mark.slow
def test_another_promise_has_its_page_too() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "cards", lambda: [card("lookahead")])
        covered = recommend(Dataset("made up", pool(700)), Coverage("0.9"))
    said = words(recommendation_page.html(covered, "log"))
    assert "What is promised At least 90 of 100 new questions" in said


@pytest.mark.slow
def test_it_is_the_same_each_time_and_written_where_it_is_asked(
    found: Recommendation, tmp_path: Path
) -> None:
    recommendation_page.write(found, "log", tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == recommendation_page.html(
        found, "log"
    )
    with pytest.raises(InputError, match="cannot write the report to"):
        recommendation_page.write(found, "log", tmp_path)
