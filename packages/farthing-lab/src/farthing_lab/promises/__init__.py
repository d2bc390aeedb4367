"""Promises that only research uses: along a stream, and for another mix of questions."""
