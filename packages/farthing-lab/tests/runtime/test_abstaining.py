"""Learned stopping withholds answers live exactly where a replay withholds them."""

from pathlib import Path

import pytest
from chat_server import Endpoint
from withheld_answers import withheld_as_replayed


def test_answers_are_withheld_where_a_replay_withholds_them(
    endpoint: Endpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    withheld_as_replayed("stopping", endpoint, capsys)
