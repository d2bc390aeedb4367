"""A job of scripted models that all say Lisbon, and bundles for it."""

import json
from pathlib import Path

import numpy as np
import pytest

from farthing.bundle.folder import save
from farthing.methods.baselines.fixed import FixedDepthPolicy
from farthing.promises.kinds import split
from farthing.traces.system import Origin

JOB = """
task = "text"
questions = "questions.jsonl"
rounds = 2
mode = "independent"
agents.base.model = "small"
agents.guide.model = "large"
[models.small]
provider = "scripted"
model = "small"
otherwise = "Answer: Lisbon"
[models.large]
provider = "scripted"
model = "large"
otherwise = "Answer: Lisbon"
"""
CAPITAL = "What is the capital of Portugal?"


@pytest.fixture
def config(tmp_path: Path) -> str:
    """Write a job, a bundle for its models, and one question; they are in the present folder."""
    (tmp_path / "job.toml").write_text(JOB)
    (tmp_path / "questions.jsonl").write_text(json.dumps({"id": "p", "question": CAPITAL}))
    for name, large in {"bundle": "large", "foreign": "huge"}.items():
        certificate = split.certify(np.ones(99), "0.1", fingerprint="f")
        origin = origin_of("small", large)
        save(
            tmp_path / name,
            FixedDepthPolicy(1),
            origin=origin,
            kappa=1.0,
            certificate=certificate,
        )
    save(tmp_path / "bare", FixedDepthPolicy(1), origin=origin_of("small", "large"))
    return "job.toml"


def origin_of(*models: str) -> Origin:
    return Origin(
        roles=("base", "guide"), models=models, mean_cost_nano=(0, 0), horizon=2, fingerprint="f"
    )
