"""Send a running gateway made-up requests, out of its own description: no 5xx, no hang.

Run: .venv-extras/bin/python benchmarks/fuzz_gateway.py --cases 10000
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / room) for room in ("gateway", "models")]

from chat_server import Endpoint  # noqa: E402 - the tests' own
from fuzzing import Fuzzed, fuzz  # noqa: E402
from gateway_running import gateway  # noqa: E402
from policy_running import config, letter, made_bundle  # noqa: E402

from farthing_gateway.storage.keys import open_keys  # noqa: E402
from farthing_gateway.storage.migrations import migrate  # noqa: E402

NAMED = ("small", "large", "farthing/letters")


async def made_key(folder: Path) -> str:
    """Return a key that may ask and read."""
    await migrate(str(folder / "gateway.db"))
    keys = await open_keys(str(folder / "gateway.db"))
    try:
        return (await keys.make("fuzz", scopes=("call", "read")))[1]
    finally:
        await keys.aclose()


def run(cases: int, seed: int) -> Fuzzed:
    """Fuzz a gateway of two healthy models and a policy with a bundle."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made_bundle(folder)
        key = asyncio.run(made_key(folder))
        text = "[record]\nshare = 0.1\n"
        with (
            Endpoint(letter) as stub,
            gateway(folder, config(stub, folder / "bundle", keys=True) + text) as running,
        ):
            others = cases // 20
            chats = cases - 3 * others
            found = fuzz(running.url, chats, others, key=key, seed=seed, models=NAMED)
            assert running.get("/ready").status == 200
            print(f"{len(stub.requests):,} calls upstream")
            return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    began = time.monotonic()
    found = run(asked.cases, asked.seed)
    for label, n in sorted(found.statuses.items()):
        print(f"{n:>6,} {label}")
    print("valid and yet refused:", dict(found.refused.most_common(10)))
    print(f"{found.cases:,} requests in {time.monotonic() - began:.0f} s")
    print(f"slowest reply {found.slowest_s:.2f} s, wrong {len(found.wrong)}")
    for wrong in found.wrong[:20]:
        print("wrong:", wrong)
    sys.exit(bool(found.wrong))


if __name__ == "__main__":
    main()
