"""Where nothing is proved the reference answers for real, and nothing that was trained is lost."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from farthing.api.policy import load
from farthing.api.questions import Traces
from farthing.bundle import folder as bundles
from farthing.bundle.base import Bundle
from farthing.bundle.sealed import BODY, TRAINED
from farthing.errors import BundleError
from farthing.methods.base import Dataset
from farthing.models.prices import Rates, TokenPrice
from farthing.models.scripted import ScriptedModel
from farthing.process.budget import PerQuestion
from farthing.promises import wording
from farthing.promises.base import Promise
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.coverage import Coverage
from farthing.promises.kinds.parity import Parity
from farthing.promises.kinds.selective import Selective
from farthing.recommendation.certify import Serving
from farthing.recommendation.evaluate import evaluate
from farthing.recommendation.pipeline import Calibrated, calibrate, train
from farthing.runtime.runner import PolicyRunner
from farthing.tasks.base import Question
from farthing.tasks.numbers import NUMBERS
from farthing.traces.arrays import TraceArrays
from farthing.traces.splits import fixed_parts
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset

ALPHA = Fraction(1, 10)
HOPELESS = Parity("large", "0.001", "0.1")


@pytest.fixture(scope="module")
def pool() -> TraceArrays:
    rng = np.random.default_rng(3)
    n = 400
    right = rng.random((n, 3)) < [0.6, 0.7, 0.9]
    cost = np.array([1_000, 5_000, 9_000]) + rng.integers(0, 500, (n, 3))
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=("small", "medium", "large"),
        models=("small", "medium", "large"),
        answer=np.where(right, 0, rng.integers(1, 4, right.shape))[:, None].astype(np.int16),
        correct=right[:, None],
        cost_nano=cost[:, None],
        signals={},
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.full(n, -1, dtype=np.int8),
        recorded=np.ones(n, dtype=np.int16),
        independent=np.ones(n, dtype=bool),
    )


def tried(
    pool: TraceArrays, folder: Path, asked: Promise = HOPELESS, policy: str = "fixed-2"
) -> Calibrated:
    if not folder.exists():
        train(Dataset("", pool), policy, ALPHA, folder)
    return calibrate(folder, pool, asked)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fixed-2", "always-small"])
def test_it_asks_the_reference_and_nobody_else(
    pool: TraceArrays, tmp_path: Path, policy: str
) -> None:
    """Whether the policy was a cascade or chose among the models by name."""
    done = tried(pool, tmp_path / "b", policy=policy)
    assert not done.certificate.promises
    assert "so large answers, which is always valid" in done.certificate.sentence()
    found = evaluate(tmp_path / "b", pool)
    assert found.value.yours == found.alone["large"]
    assert found.value.saved == 0
    assert found.notes == ()
    assert done.value is not None
    assert done.value.yours == done.value.theirs
    assert done.left == ""


def test_it_answers_live(pool: TraceArrays, tmp_path: Path) -> None:
    tried(pool, tmp_path / "b")
    cost = TokenPrice((Rates(Decimal(0), Decimal(0)),), request=Decimal("0.002"))

    def model(name: str) -> ScriptedModel:
        said = "Answer: 7" if name == "large" else "Answer: 8"
        return ScriptedModel(lambda prompt: said, name=name, price=cost)

    models = {name: model(name) for name in pool.roles}
    serving = PolicyRunner.with_models(bundles.load(tmp_path / "b"), models, NUMBERS)
    answer = asyncio.run(serving.answer(Question("q", "What is 4 + 3?")))
    assert (answer.best, answer.cost_usd) == ("7", 0.002)
    assert [call.role for call in answer.trace.calls] == ["large"]
    assert "so large answers, which is always valid" in answer.promise


def same(ours: Bundle | None, theirs: Bundle) -> bool:
    return ours is not None and replaced(ours) == replaced(theirs)


def replaced(bundle: Bundle) -> tuple[object, ...]:
    return bundle.kind, bundle.origin, bundle.kappa, bundle.certificate, bundle.questions


def test_the_trained_policy_is_kept_and_calibrated_again(pool: TraceArrays, tmp_path: Path) -> None:
    folder = tmp_path / "b"
    train(Dataset("", pool), "fixed-2", ALPHA, folder)
    trained = bundles.load(folder)
    for _ in range(2):  # a second refusal keeps the same
        tried(pool, folder)
        assert same(bundles.load(folder).trained, trained)
    done = calibrate(folder, pool, Coverage("0.6"))
    assert done.certificate.promises
    again = bundles.load(folder)
    assert again.kind == trained.kind == "fixed"
    assert again.trained is None
    assert sorted(path.name for path in folder.iterdir()) == ["bundle.json", "weights.safetensors"]


def test_what_was_promised_before_is_kept_inside(pool: TraceArrays, tmp_path: Path) -> None:
    folder = tmp_path / "b"
    tried(pool, folder, Coverage("0.6"))
    before = bundles.load(folder)
    tried(pool, folder)
    assert same(bundles.load(folder).trained, before)


def test_a_bundle_inside_that_was_changed_is_refused(pool: TraceArrays, tmp_path: Path) -> None:
    tried(pool, tmp_path / "b")
    inner = tmp_path / "b" / TRAINED / BODY
    inner.write_text(inner.read_text().replace('"kind": "fixed"', '"kind": "random"'))
    with pytest.raises(BundleError, match="was changed"):
        bundles.load(tmp_path / "b")


def test_agreement_falls_back_alike(pool: TraceArrays, tmp_path: Path) -> None:
    done = tried(pool, tmp_path / "b", Agreement("large", "0.001", "0.1"))
    assert not done.certificate.promises
    assert done.value is not None
    assert (done.value.measure, done.value.yours.accuracy) == ("agreement", 1.0)
    found = evaluate(tmp_path / "b", pool)
    assert found.value.yours == found.alone["large"]


def test_after_an_agreement_what_is_right_counts_again(pool: TraceArrays, tmp_path: Path) -> None:
    """The trained policy was judged by what is right, and so it is when it is calibrated next."""
    folder = tmp_path / "b"
    plain = tried(pool, tmp_path / "other", Coverage("0.6"))
    tried(pool, folder, Agreement("large", "0.001", "0.1"))
    again = tried(pool, folder, Coverage("0.6")).certificate
    looked = (*plain.certificate.conditional_on, wording.look(2))
    assert again == structs.replace(plain.certificate, conditional_on=looked)
    assert bundles.load(folder).origin.grade == "right"


def test_from_python_the_trained_policy_is_calibrated_too(
    pool: TraceArrays, tmp_path: Path
) -> None:
    folder = tmp_path / "b"
    tried(pool, folder)
    parts = fixed_parts(pool, np.random.default_rng(0))
    held_out = Traces(Dataset("", pool.take(parts.calibrate)))
    policy = load(folder)
    assert policy.bundle.kind == "always"
    with pytest.warns(UserWarning, match="It is look 2 on these questions"):
        again = policy.calibrate(held_out, Coverage("0.6"))
    assert (again.bundle.kind, again.bundle.trained) == ("fixed", None)


@pytest.mark.slow
def test_otherwise_it_is_left_as_it_was(pool: TraceArrays, tmp_path: Path) -> None:
    folder = tmp_path / "b"
    train(Dataset("", pool), "fixed-2", ALPHA, folder)
    before = (folder / BODY).read_bytes()
    seen = replace(pool, independent=np.zeros(len(pool), dtype=bool))
    largest = dict.fromkeys(pool.roles, 20_000)
    for done, why in (
        (calibrate(folder, seen, HOPELESS), "large was not recorded alone"),
        (calibrate(folder, pool, Selective("0.999")), "no reference"),
        (
            calibrate(folder, pool, HOPELESS, serving=Serving(PerQuestion(90_000, largest))),
            "a budget a question may not pay for large",
        ),
    ):
        assert why in done.left
        assert done.value is None
        assert (folder / BODY).read_bytes() == before


@pytest.mark.slow
def test_rounds_are_left_as_they_were(tmp_path: Path) -> None:
    config = preset("hotpotqa-llama2-7b").config
    rounds = generate(config, 300, np.random.default_rng(0))
    rounds = replace(rounds, independent=np.ones(300, dtype=bool))
    done = tried(rounds, tmp_path / "b", Parity("guide", "0.001", "0.1"))
    assert "in rounds nobody knows what guide says" in done.left


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (HOPELESS, " 30 %: 0.112 was lost here, and 0.001 is allowed."),
        (
            Parity("large", "0.15", "0.1"),
            "About 890 more questions would probably prove a saving of 30 %; these 80 would",
        ),
        (
            Parity("large", "0.12", "0.001"),
            "More than 5,000 proving questions would be needed for a saving of 30 %",
        ),
        (Agreement("large", "0.001", "0.1"), "or epsilon 0."),
        (Selective("0.999"), "answered none of them, so nothing can be foretold"),
        (Coverage("0.99", delta="0.1"), "It takes 230 calibration questions or more."),
    ],
)
def test_the_refusal_says_what_would_probably_do(
    pool: TraceArrays, tmp_path: Path, asked: Promise, says: str
) -> None:
    assert says in tried(pool, tmp_path / "b", asked).outlook


@pytest.mark.slow
def test_so_does_that_of_a_selective_promise(pool: TraceArrays, tmp_path: Path) -> None:
    said = tried(pool, tmp_path / "b", Selective("0.97"), "lazy").outlook
    assert said.startswith(
        "About 40 more questions would probably prove this promise; these 80 would"
    )


@pytest.mark.parametrize(
    ("policy", "ends"),
    [
        ("fixed-2", " These 80 would probably do for epsilon 0."),
        ("always-small", " is allowed."),  # none that is below 1/2 would do
    ],
)
def test_where_more_is_lost_than_may_be_no_number_of_questions_is_named(
    pool: TraceArrays, tmp_path: Path, policy: str, ends: str
) -> None:
    said = tried(pool, tmp_path / "b", Agreement("large", "0.05", "0.1"), policy).outlook
    assert "More questions would not prove a saving of " in said
    assert " was lost here, and 0.05 is allowed." in said
    assert ends in said
    assert "proving questions" not in said


def test_what_is_proved_needs_no_outlook(pool: TraceArrays, tmp_path: Path) -> None:
    done = tried(pool, tmp_path / "b", Parity("large", "0.4", "0.1"))
    assert done.certificate.promises
    assert done.outlook == ""
