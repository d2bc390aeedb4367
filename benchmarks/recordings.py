"""Where benchmarks find the recordings that are no part of the repository.

`docs/research/log.md` says which ones there are, and where they come from.
"""

import sys
from pathlib import Path

FOLDER = Path("../shared/data/traces")
"""Beside the clone, unless a script is told of another folder."""


def needed(*files: Path) -> None:
    """End in one line and exit code 2 where a file is absent."""
    for file in files:
        if not file.is_file():
            print(
                f"{file} is not there; 'Recordings' in docs/research/log.md says where it comes "
                f"from, and the script's first lines how to name another place",
                file=sys.stderr,
            )
            raise SystemExit(2)
