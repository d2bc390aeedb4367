"""From a log of one model to answers under a promise: seconds, dollars, questions, and the truth.

    .venv/bin/python benchmarks/experiments/one_model_log.py

A log of 3,000 tickets, and a local server that speaks OpenAI's chat completions and takes 60 calls
at once: `nano` and `small` err on complicated tickets. The two commands run as people type them;
then fresh tickets go to the gateway that the last line starts.
"""

import asyncio
import hashlib
import json
import runpy
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from aiohttp import web

ROOT = Path(__file__).parents[2]
PAGE = runpy.run_path(str(ROOT / "tests/cli/pages/tickets.py"))
FARTHING = Path(sys.executable).with_name("farthing")
SKILL = {"nano": (0.97, 0.45), "small": (0.985, 0.75), "gpt-4o": (1.0, 1.0)}
"""Model to the chance of a right answer, on plain and on complicated tickets."""
AT_ONCE = 60
PORT, SERVED = 8123, 8124
FRESH = 5_000
TRUTH = dict(PAGE["tickets"](3_000, 1)) | dict(PAGE["tickets"](FRESH, 2))


class Server:
    """Answers as its models are skilled; refuses what is more than it takes at once."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.refused = self._under_way = 0

    def run(self) -> None:
        """Serve until the process ends."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._chat)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", PORT).start()
        await asyncio.Event().wait()

    async def _chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        if self._under_way >= AT_ONCE:
            self.refused += 1
            return web.json_response({"error": {"message": "too many requests"}}, status=429)
        self._under_way += 1
        try:
            await asyncio.sleep(0.05)
        finally:
            self._under_way -= 1
        model, text = body["model"], body["messages"][-1]["content"]
        self.asked[model] += 1
        return web.json_response(_reply(model, text, _answer(model, text)))


def _answer(model: str, text: str) -> str:
    chance = int(hashlib.sha256(f"{model}{text}".encode()).hexdigest()[:8], 16) / 2**32
    right, teams = TRUTH[text], sorted(PAGE["WORDS"])
    if chance < SKILL[model]["complicated" in text]:
        return right
    return teams[(teams.index(right) + 1) % len(teams)]


def _reply(model: str, text: str, answer: str) -> dict[str, Any]:
    read = len(PAGE["SYSTEM"] + text) // 4 + 12  # as the log counts
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": answer},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": read, "completion_tokens": 2, "total_tokens": read + 2},
    }


def command(folder: Path, *words: str) -> str:
    """Run a command, print what it says and its seconds, and return its last line."""
    print("$ farthing", " ".join(words))
    began = time.monotonic()
    done = subprocess.run(
        [FARTHING, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    print(done.stderr + done.stdout)
    print(f"{time.monotonic() - began:.1f} s")
    return done.stdout.splitlines()[-1]


def ask(text: str) -> tuple[bool, str, float, str]:
    """Ask the gateway a ticket; return whether it is right, who said so, its cost, its promise."""
    said = [{"role": "system", "content": PAGE["SYSTEM"]}, {"role": "user", "content": text}]
    body = json.dumps({"model": "gpt-4o", "messages": said, "temperature": 0}).encode()
    url = f"http://127.0.0.1:{SERVED}/v1/chat/completions"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        found = json.loads(reply.read())
    about, answer = found["farthing"], found["choices"][0]["message"]["content"]
    return answer == TRUTH[text], about["answered_by"], about["cost_usd"], about["promise"]


def main() -> None:
    """Run both commands, serve, and hold the answers to the truth."""
    server = Server()
    threading.Thread(target=server.run, daemon=True).start()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        PAGE["write"](folder / "tickets.jsonl", 3_000)
        command(folder, "recommend", "tickets.jsonl")
        url = f"http://localhost:{PORT}/v1"
        models = ["--models", f"{url}#nano,{url}#small", "--reference", f"{url}#gpt-4o"]
        prices = ["nano=0.05,0.2", "small=0.3,1.2", "gpt-4o=2.5,10"]
        priced = [word for price in prices for word in ("--price", price)]
        limits = ["--sample", "1500", "--max-cost", "5", "--max-loss", "0.02", "--yes"]
        last = command(folder, "try", "tickets.jsonl", *models, *priced, *limits)
        print(f"server: asked {dict(server.asked)}, refused {server.refused}")
        bundle = last.removeprefix("Next: farthing ").split()
        gateway = subprocess.Popen(
            [FARTHING, *bundle, "--port", str(SERVED)],
            cwd=folder,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert gateway.stderr is not None
            while "serving at" not in gateway.stderr.readline():
                pass
            with ThreadPoolExecutor(8) as several:
                found = list(several.map(ask, (text for text, _ in PAGE["tickets"](FRESH, 2))))
        finally:
            gateway.terminate()
            gateway.wait()
    right, cost = sum(one[0] for one in found), sum(one[2] for one in found)
    print(f"fresh: {right:,} of {FRESH:,} right, as gpt-4o on all of them; ${cost:.4f}")
    print(Counter(one[1] for one in found), Counter(one[3] for one in found))


if __name__ == "__main__":
    main()
