"""A recommendation as one page for who pays: money, the figure, the promise, what was tried."""

from pathlib import Path

from farthing.errors import InputError
from farthing.recommendation.record import Recommendation
from farthing.reports import payer, recommend, saved
from farthing.reports.rendering import grid_of, inline, render


def write(found: Recommendation, source: str, path: Path) -> None:
    """Write the page.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(html(found, source), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write the report to {path}: {error.strerror}") from error


def html(found: Recommendation, source: str) -> str:
    """Return the page, which asks nothing of the network and runs no script."""
    advice, drawn = recommend.advice(found), saved.of_recommendation(found)
    return render(
        "recommendation.html",
        source,
        found=found,
        offer=payer.recommended(found, f"{advice[0].upper()}{advice[1:]}"),
        figure=inline(saved.figure(drawn), "What is saved against what is lost") if drawn else "",
        reading=drawn.sentence() if drawn else "",
        models=grid_of(recommend.models(found)),
        questions=recommend.questions(found),
        tried=grid_of(recommend.tried(found)),
        evidence=[*recommend.evidence(found)],
    )
