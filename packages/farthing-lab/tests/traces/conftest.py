"""Any file of traces that the form allows."""

from any_traces import any_file, assert_same

__all__ = ["any_file", "assert_same"]
