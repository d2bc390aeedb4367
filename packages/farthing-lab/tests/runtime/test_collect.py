"""Collection of dialogues keeps what that of single calls does."""

from collected_alike import *  # noqa: F403

MODE = "dialogue"
