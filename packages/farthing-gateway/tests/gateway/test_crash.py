"""Workers are killed and caps are stormed: a small version of `benchmarks/gateway_crash.py`."""

from pathlib import Path

import pytest
from crashing import FITS, Killed, against_a_cap, starts, under_kills
from soaking import TIMES

pytestmark = pytest.mark.soak


def test_a_crowd_never_exceeds_a_cap_and_all_that_fits_is_answered(
    tmp_path: Path, where: str
) -> None:
    found = against_a_cap(tmp_path, where, rounds=2 * TIMES, requests=200, workers=2)
    for one in found:
        assert one.spent_nano <= one.cap_nano
        assert (one.answered, one.refused, one.others) == (FITS, 150, 0)
        assert one.calls == FITS


def test_killed_workers_leave_a_ledger_that_is_right(tmp_path: Path, where: str) -> None:
    kills, requests = 5 * TIMES, 60 * TIMES
    found = under_kills(tmp_path, where, kills=kills, requests=requests, workers=2, at_once=8)
    assert found.kills == kills
    assert found.answered == requests
    right(found)


def test_workers_that_record_start_on_one_database(tmp_path: Path, where: str) -> None:
    assert list(starts(tmp_path, where, number=2 * TIMES, workers=4)) == [[]] * 2 * TIMES


def right(found: Killed) -> None:
    """Check what must hold however many workers were killed."""
    asked = found.upstream.total()
    assert found.held == 0
    assert asked <= found.ledger_calls <= asked + found.marked
    settled = found.ledger_calls - found.marked
    assert settled <= found.answered  # no request is paid twice, but for what is marked
    assert found.twice <= min(found.marked, found.broken + found.late)
    assert found.ledger_nano - found.marked_nano <= found.replied_nano <= found.ledger_nano
