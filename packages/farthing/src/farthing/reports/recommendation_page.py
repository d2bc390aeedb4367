"""A recommendation as one page for who pays: money, the figure, the promise, what was tried."""

from pathlib import Path

from markupsafe import Markup

from farthing.errors import InputError, MissingExtraError
from farthing.recommendation.losses import LossTable
from farthing.recommendation.record import Recommendation
from farthing.reports import losses as shown
from farthing.reports import payer, recommend, saved
from farthing.reports.rendering import grid_of, render


def write(found: Recommendation, source: str, path: Path, losses: LossTable | None = None) -> None:
    """Write the page; `losses` are what is saved at each, where they were proved together.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(html(found, source, losses), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write the report to {path}: {error.strerror}") from error


def html(found: Recommendation, source: str, losses: LossTable | None = None) -> str:
    """Return the page, which asks nothing of the network and runs no script."""
    advice, drawn = recommend.advice(found), saved.of_recommendation(found, losses)
    figure, missing = _figure(drawn)
    return render(
        "recommendation.html",
        source,
        found=found,
        offer=payer.recommended(found, f"{advice[0].upper()}{advice[1:]}"),
        figure=figure,
        missing=missing,
        reading=drawn.sentence() if drawn else "",
        losses=grid_of(shown.grid(losses)) if losses else None,
        sure=shown.sentences(losses) if losses else (),
        models=grid_of(recommend.models(found)),
        questions=recommend.questions(found),
        tried=grid_of(recommend.tried(found)),
        evidence=[*recommend.evidence(found)],
    )


def _figure(drawn: saved.SavedAgainstLost | None) -> tuple[str, str]:
    """Return the figure, or what must be installed to draw it."""
    if drawn is None:
        return "", ""
    try:
        from farthing.reports import saved_figure  # noqa: PLC0415 - an extra
    except MissingExtraError as error:
        return "", str(error)
    svg = saved_figure.svg(saved_figure.figure(drawn), "What is saved against what is lost")
    return Markup(svg), ""  # noqa: S704 - matplotlib has escaped every text
