"""The sample log: 2,000 support tickets in the form of LiteLLM's spend log, all of it made up.

`benchmarks/sample_log.py` draws it: no customer wrote a ticket, and no model answered one.
"""

import gzip
from importlib.resources import files
from pathlib import Path

from farthing.errors import InputError
from farthing.traces.atomic import replacing

NAME = "tickets.jsonl"


def write_sample_log(file: Path) -> None:
    """Write the sample log; where it stands already, nothing is done.

    Raises:
        InputError: the file holds something else.
    """
    packed = files("farthing.traces.sample").joinpath(f"{NAME}.gz").read_bytes()
    log = gzip.decompress(packed)
    if file.exists():
        if file.is_file() and file.read_bytes() == log:
            return
        raise InputError(f"{file}: is there, and not the sample log; name another file")
    with replacing(file) as unfinished:
        unfinished.write_bytes(log)
