"""The weights that ship do on fresh questions what their page says."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import fisher_exact
from transformers import AutoModelForCausalLM

from farthing_lab.lm.make import LENGTHS, NETWORKS, MeasuredPart, answered, measure
from farthing_lab.lm.symbols import SYMBOLS
from farthing_lab.models.embedded import WEIGHTS, known

PAGE = Path(__file__).parents[4] / "docs/research/language-models.md"
NAMES = [one.name for one in NETWORKS]


def said(name: str) -> list[MeasuredPart]:
    log: dict[str, Any] = json.loads((WEIGHTS / name / "training.json").read_text())
    return [MeasuredPart(**one) for one in log["measured"]]


@pytest.fixture(scope="module")
def networks() -> dict[str, Any]:
    torch.set_num_threads(1)
    return {name: AutoModelForCausalLM.from_pretrained(WEIGHTS / name).eval() for name in NAMES}


@pytest.mark.slow
@pytest.mark.parametrize("one", NETWORKS, ids=NAMES)
def test_fresh_questions_are_answered_as_often_as_the_page_says(
    one: Any, networks: dict[str, Any]
) -> None:
    fresh = list(measure(networks[one.name], 60, 4_711, controls=one.calls))
    assert [(m.kind, m.hops) for m in fresh] == [(m.kind, m.hops) for m in said(one.name)]
    for now, before in zip(fresh, said(one.name), strict=True):
        counts = np.array([[m.right, m.asked - m.right] for m in (now, before)])
        assert fisher_exact(counts).pvalue > 1e-4, (now, before)  # 105 such tests


@pytest.mark.slow
def test_a_few_fresh_questions_are_answered(networks: dict[str, Any]) -> None:
    """Quickly: the large one solves a chain that the small one does not."""
    text = "c=b*7+2;d=c*3+9;a=4;e=d*9+1;b=a*3+5;h=b*7;f=e*3+4;f?"
    large, small = (answered(networks[name], [text])[0] for name in ("large", "small"))
    assert large == (
        "fedcba;a=4;b=a*3+5=2+5=7;c=b*7+2=9+2=1;d=c*3+9=3+9=2;e=d*9+1=8+1=9;"
        "f=e*3+4=7+4=1;<answer>1</answer>"
    )
    assert small != large


def test_no_expert_is_right_on_everything() -> None:
    """Against each, the others together win at least a tenth of some kind of question."""
    experts = {one.name: said(one.name) for one in NETWORKS if not one.calls}
    for name, own in experts.items():
        others = [of for other, of in experts.items() if other != name]
        best = [max(m.right for m in column) for column in zip(*others, strict=True)]
        gained = [(b - m.right) / m.asked for b, m in zip(best, own, strict=True)]
        assert max(gained) >= 0.1, name


def test_the_page_says_what_was_measured() -> None:
    page = PAGE.read_text()
    for name in NAMES:
        for kind in LENGTHS:
            counts = [m.right / m.asked for m in said(name) if m.kind == kind]
            row = f"| {name} | {kind} | " + " | ".join(f"{c:.2f}" for c in counts) + " |"
            assert row in page
        log = json.loads((WEIGHTS / name / "training.json").read_text())
        assert re.search(rf"\| {name} \|.*\b{log['symbols']:,}\b", page)


def test_what_ships_is_small_and_of_one_vocabulary(networks: dict[str, Any]) -> None:
    assert sum(file.stat().st_size for file in WEIGHTS.rglob("*") if file.is_file()) < 25e6
    assert len(SYMBOLS) < 64
    assert {one.config.vocab_size for one in networks.values()} == {len(SYMBOLS)}
    assert {one.name for one in known()} == set(NAMES)
    for one in known():
        assert sum(p.numel() for p in networks[one.name].parameters()) == one.parameters
