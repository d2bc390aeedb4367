"""What the command line shows fits, and nothing that matters is cut."""

import re
from io import StringIO

import pytest

from farthing.cli.console import show, trainings


def test_lines_carry_no_trailing_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    show("one  \n\ntwo")
    assert capsys.readouterr().out == "one\n\ntwo\n"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_time_of_a_training_is_not_cut(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    terminal = StringIO()
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", terminal)
    figures = dict.fromkeys(("cost", "coverage", "kappa", "violation"), 0.123)
    with trainings() as shown:
        shown.update("ccpo-published, alpha 0.1", 0, 2000, figures)
        shown.update("ccpo-published, alpha 0.1", 1000, 2000, figures)
        shown._progress.refresh()
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue())
    line = next(line for line in re.split(r"[\r\n]+", plain) if "1000/2000" in line)
    assert len(line) <= width
    assert re.search(r" (--:--|\d+:\d\d) ", f"{line} ")
    assert "…" not in line
    assert ("cost 0.123" in line) == (width > 60)
    assert ("violation 0.123" in line) == (width > 80)


def test_without_a_terminal_a_line_is_said_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    with trainings(lambda: now[0]) as shown:
        for update in range(1, 81):
            now[0] += 10.0
            shown.update("corl", update, 80, {"reward": 0.5, "calls": 0.25})
        shown.update("short", 1, 1, {})
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert lines[0] == "corl  3/80  reward 0.5  calls 0.25"
    assert len(lines) == 80 // 3
