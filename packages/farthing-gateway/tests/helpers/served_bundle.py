"""A bundle behind `farthing serve`, asked as clients ask."""

import json
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def serving(bundle: Path) -> Iterator[str]:
    """Run `farthing serve BUNDLE` in a process of its own; give its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(sys.executable).with_name("farthing")
    process = subprocess.Popen(
        [program, "serve", bundle, "--port", str(port)], stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        while "serving at" not in (line := process.stderr.readline()):
            assert line, "the gateway did not start"
        yield f"http://127.0.0.1:{port}/v1/chat/completions"
    finally:
        process.terminate()
        process.communicate(timeout=20)


def ask(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """Send a request; return the reply."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as reply:
        found: dict[str, Any] = json.loads(reply.read())
    return found
