"""Any file of traces that the form allows, of a task of the laboratory too."""

import pytest
from any_traces import TASKS, assert_same, files_of
from hypothesis import strategies as st

from farthing.traces.base import Trace

__all__ = ["any_file", "assert_same"]


@pytest.fixture(scope="session")
def any_file() -> st.SearchStrategy[list[Trace]]:
    """Traces of one file: the paper's protocol or a pool of models."""
    return files_of((*TASKS, "hotpotqa"))
