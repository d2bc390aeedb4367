"""What `farthing demo --gateway` does: a gateway, two models behind it, and two days of traffic.

It types what a user would type, and shows it. The models run in a process of their own, the gateway
in another; both end with the demo.
"""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files as package_files
from pathlib import Path
from string import Template
from typing import Any

from rich.text import Text

from farthing import plugins
from farthing.cli.console import interruptible, remark, show, trainings
from farthing.errors import FarthingError, InputError, MissingPackageError
from farthing.money import significant
from farthing.reports.table import Record

CONFIG, DAY, BUNDLE = "serve.toml", "day.db", "bundle"
FIRST, SECOND = 600, 300
"""Questions of the first day, which `sums` answers, and of the second, when a bundle decides."""
HOPS = range(1, 7)
"""Lengths of the sums: small is lost beyond four."""
AT_ONCE = 16
READY_S = 60.0
"""Most seconds that a server may take to begin."""
PICKED_UP_S = 5.0
"""In which the gateway finds a new bundle."""


def play(out: Path, *, stay: bool) -> None:
    """Do everything, and say what came of it.

    Args:
        out: the folder of the configuration, the database, the traces and the bundle.
        stay: whether the gateway goes on until Ctrl-C.
    """
    if "serve" not in plugins.names("commands"):
        raise MissingPackageError("farthing demo --gateway", plugins.GATEWAY)
    if (out / CONFIG).exists():
        raise InputError(f"{out}: a gateway was shown here before; name another folder (--out)")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C, which ends the servers
    models, port = _free(2)
    _write_config(out, port, models)
    show(
        Text(
            "Real: two language models, in a process of their own; a gateway in another; what they "
            "answer, what it saves, and the proof. Small: the models and the questions, which are "
            "sums of one to six steps. sums is right on nearly all and costs ten times as much; "
            "small is lost beyond four steps, and nobody tells the gateway. Nobody is paid."
        )
    )
    serving = f"lm serve --model small --model sums --port {models}"
    with interruptible(f"what was recorded is in {out}"), _running(out, serving, models):
        made = _farthing(out, "keys make demo --config serve.toml --scope call --scope admin")
        key = json.loads(made)["key"]
        with _running(out, f"serve {CONFIG} --record --watch", port):
            _two_days(out, f"http://127.0.0.1:{port}/v1", key)
            if stay:
                _stay(port, key)


def _two_days(out: Path, url: str, key: str) -> None:
    before = asyncio.run(_day((url, key), "sums", FIRST, "the first day", seed=1))
    _say("The first day: sums answered, small was tried beside it", before)
    _farthing(out, f"traffic export --config {CONFIG} --policy demo --out {DAY}")
    command = f"recommend {DAY} --promise agreement --reference sums --out {BUNDLE}"
    for line in _farthing(out, command).splitlines():
        show(Text(line))
    time.sleep(PICKED_UP_S)
    after = asyncio.run(_day((url, key), "sums", SECOND, "the second day", seed=2))
    _say("The second day: the same clients, and the bundle decides", after)


def _say(title: str, asked: Sequence[Record]) -> None:
    n = len(asked)
    cost, saved = (sum(one[what] or 0.0 for one in asked) for what in ("cost_usd", "saved_usd"))
    right = sum(one["right"] for one in asked) / n
    kept = sum(one["promise"] != "none" for one in asked)
    show(Text(f"\n{title}", style="bold"))
    show(
        Text(
            f"{n} questions cost ${significant(cost)}; saved ${significant(saved)} "
            f"({100 * saved / (cost + saved):.0f} %); right {right:.3f}; "
            f"{kept} replies with a promise."
        )
    )


def _stay(port: int, key: str) -> None:
    remark(
        f"""
The gateway goes on until Ctrl-C. Look at http://127.0.0.1:{port}/admin (log in with the key below),
or ask it yourself:
  export OPENAI_BASE_URL=http://127.0.0.1:{port}/v1 OPENAI_API_KEY={key}"""
    )
    while True:
        time.sleep(1)


async def _day(at: tuple[str, str], model: str, n: int, name: str, seed: int) -> list[Record]:
    """Send a day's questions, some at once; the models learned from none of them."""
    import aiohttp
    import numpy as np

    from farthing_lab.tasks.arithmetic import ChainProblem, Recipe, draw_of

    recipes = [Recipe("sums", hops) for hops in HOPS]
    drawn = draw_of("test", recipes, np.random.default_rng(seed))
    problems = [next(drawn) for _ in range(n)]
    room, done = asyncio.Semaphore(AT_ONCE), 0
    url, key = at
    headers = {"Authorization": f"Bearer {key}"}

    async with aiohttp.ClientSession(headers=headers) as session:
        with trainings() as shown:

            async def one(problem: ChainProblem) -> Record:
                nonlocal done
                async with room:
                    found = await _ask(session, url, model, problem)
                done += 1
                shown.update(name, done, n, {})
                return found

            return list(await asyncio.gather(*map(one, problems)))


async def _ask(session: Any, url: str, model: str, problem: Any) -> Record:
    from farthing_lab.tasks.arithmetic import normalise

    body = {"model": model, "messages": [{"role": "user", "content": problem.text}]}
    async with session.post(f"{url}/chat/completions", json=body) as reply:
        said = await reply.json()
    if reply.status != 200:
        raise FarthingError(f"the gateway says: {said['error']['message']}")
    text = said["choices"][0]["message"]["content"] or ""
    return {**said["farthing"], "right": normalise(text) == problem.answer}


def _write_config(out: Path, port: int, models: int) -> None:
    text = (package_files("farthing_lab.cli") / "demo_gateway" / CONFIG).read_text(encoding="utf-8")
    out.mkdir(parents=True, exist_ok=True)
    filled = Template(text).substitute(PORT=port, MODELS=models)
    (out / CONFIG).write_text(filled, encoding="utf-8")


def _free(n: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [int(one.getsockname()[1]) for one in held]
    for one in held:
        one.close()
    return ports


@contextmanager
def _running(out: Path, command: str, port: int) -> Iterator[None]:
    remark(f"$ farthing {command} &")
    log = out / f"{command.split(maxsplit=1)[0]}.log"
    with log.open("wb") as written:
        running = subprocess.Popen(  # noqa: S603 - our own command
            _command(command), cwd=out, stdout=written, stderr=written, start_new_session=True
        )
    try:
        _wait(running, port, log)
        yield
    finally:
        running.terminate()
        running.wait()


def _wait(running: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    until = time.monotonic() + READY_S
    while time.monotonic() < until and running.poll() is None:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise InputError(f"a server did not begin; {log} says why")


def _farthing(out: Path, command: str) -> str:
    """Run a command as a user would; return what it prints."""
    remark(f"\n$ farthing {command}")
    quiet = ["--json"] if command.startswith("keys") else []
    done = subprocess.run(  # noqa: S603 - our own command
        [*_command(command), *quiet], cwd=out, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise FarthingError(f"`farthing {command}` ended with {done.returncode}; see above")
    return done.stdout


def _command(command: str) -> list[str]:
    return [sys.executable, "-c", "from farthing.cli.main import run; run()", *command.split()]
