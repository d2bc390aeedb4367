"""Recorded calls from other tools' files, one file a format; see `docs/how-to/importing.md`."""
