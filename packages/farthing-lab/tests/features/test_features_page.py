"""The page lists every feature there is, and no other, with its needs."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from farthing.features.rounds import VERSION, FeatureSet, columns
from farthing.traces.arrays import SIGNALS, TraceArrays
from farthing.traces.base import GRADES
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset

PAGE = (Path(__file__).parents[4] / "docs/reference/features.md").read_text()
ROWS = {
    cells[0].strip("` "): [cell.strip() for cell in cells[1:]]
    for line in PAGE.splitlines()
    if line.startswith("| `")
    for cells in [line.strip("|").split("|")]
}


OF_THOUGHTS = {name for name in ROWS if "[thought]" in name}
"""What is seen of the cuts of one thought; rounds have none of it."""


def traces() -> TraceArrays:
    drawn = generate(preset("mmlu-llama2-7b").config, 200, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    every = {name: rng.random(drawn.answer.shape).astype(np.float32) for name in SIGNALS}
    return replace(drawn, signals={**every, **drawn.signals, "depth": every["latency_s"]})


def row_of(name: str) -> str:
    """Return which row of the page describes a feature."""
    name = re.sub(r"\[\w+\]$", "[ROLE]", re.sub(r"=\d+$", "=T", name))
    return name.replace("depth", "NAME")


def test_every_feature_has_a_row_and_every_row_a_feature() -> None:
    assert {row_of(name) for name in columns(traces(), ["depth"], 4)} == {*ROWS} - OF_THOUGHTS


def test_the_page_describes_the_present_version_and_names_the_grades() -> None:
    assert f"**version {VERSION}**" in PAGE
    assert all(f"`{grade}`" in PAGE for grade in GRADES)


def test_a_feature_needs_what_the_page_says() -> None:
    """Without the recorded numbers that a row names, its features are off; the others stay on."""
    whole = traces()
    before = {row_of(name) for name in FeatureSet.fit(whole, ["depth"]).names}
    for signal in ("verdict", "confidence", "uncertainty"):
        kept = {name: values for name, values in whole.signals.items() if name != signal}
        after = {
            row_of(name) for name in FeatureSet.fit(replace(whole, signals=kept), ["depth"]).names
        }
        assert before - after == {name for name, cells in ROWS.items() if cells[1] == f"`{signal}`"}
    bare = {row_of(name) for name in FeatureSet.fit(replace(whole, signals={})).names}
    never_vary = {"no_answer[ROLE]"}
    free = {row for row, cells in ROWS.items() if cells[1] in {"nothing", "`answer`", "`cost_usd`"}}
    assert bare == free - never_vary - OF_THOUGHTS
