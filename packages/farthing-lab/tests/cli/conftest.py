"""The command line run in this process, and a file of made-up questions."""

from pathlib import Path

import numpy as np
import pytest
from command_line import farthing, imported, pool, refused

from farthing.traces.jsonl import write_traces
from farthing_lab.generator.generate import generate_traces
from farthing_lab.generator.presets import preset

__all__ = ["farthing", "imported", "pool", "refused", "runs"]


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a trace file of 200 made-up questions."""
    path = tmp_path_factory.mktemp("traces") / "runs.jsonl.gz"
    config = preset("hotpotqa-llama2-7b").config
    write_traces(path, generate_traces(config, 200, np.random.default_rng(0)))
    return path
