"""Which mode of a trained thinker is within two points of its dearest, and what does it save?

    .venv/bin/python benchmarks/thinker_modes.py OVERTHINKER [--thinker thinkdial] [--updates 30]

OVERTHINKER is the network that `benchmarks/thinkers.py --overthinker` keeps. A thinker with modes
low, medium and high trains it, or with `--updates 0` only teaches it; then each mode answers fresh
questions, and the cheapest is proved whose accuracy is close to that of high.
"""

import argparse
import json
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import torch

from farthing.methods.cards import system
from farthing.models.prices import Rates, TokenPrice
from farthing.promises.kinds.parity import Parity
from farthing_lab.corl.certificate import EmbeddedThinker, ModalThinker, certify_modes
from farthing_lab.corl.pool import GeneratedQuestions
from farthing_lab.lm.overthinking import RECIPES
from farthing_lab.methods.thinkers.training import ThinkingCourse, train
from farthing_lab.models.weights import load

MODES = ("low", "medium", "high")
PRICE = TokenPrice((Rates(Decimal("0.3"), Decimal("1.2")),))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("overthinker", type=Path)
    arguments.add_argument("--thinker", default="thinkdial")
    arguments.add_argument("--updates", type=int, default=30)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--n", type=int, default=1_500)
    arguments.add_argument("--epsilon", type=Fraction, default=Fraction("0.02"))
    given = arguments.parse_args()
    torch.set_num_threads(1)
    began = time.process_time()
    network = load(str(given.overthinker), "float32")[0]
    course = ThinkingCourse(updates=given.updates)
    train(network, system("thinker", given.thinker), course, seed=given.seed)
    print(f"trained in {time.process_time() - began:.0f} s of a core", flush=True)
    thinker = ModalThinker(given.thinker, MODES, EmbeddedThinker(network.eval(), PRICE))
    asked = Parity(epsilon=given.epsilon, delta=Fraction("0.1"))
    found = certify_modes(thinker, GeneratedQuestions(RECIPES), asked, n=given.n)
    for role, one in found.figures.items():
        print(f"{role:18} right {one.accuracy:.4f}  USD per 1,000 {1_000 * one.cost_usd:.5f}")
    print(found.certificate.sentence())
    judged = found.found.judged
    said = {
        "mode": found.mode and found.mode.name,
        "saved": found.found.value.saved,
        "verdict": judged and judged.verdict,
        "outlook": found.outlook,
    }
    print(json.dumps(said))
    print(f"{time.process_time() - began:.0f} s of a core")


if __name__ == "__main__":
    main()
