"""The Python door passes each part of the questions to whom it is for."""

import asyncio
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import farthing as ft
from farthing import bundle as bundles
from farthing.calibration.guarantees import split
from farthing.errors import FarthingError, InputError
from farthing.models.scripted import ScriptedModel
from farthing.process.generator.generated_traces import generate_traces
from farthing.process.generator.presets import preset
from farthing.process.replayed import replay
from farthing.traces.assemble import fingerprint
from farthing.traces.store import Store
from farthing.traces.system import Part

SYSTEM = {
    role: Part(model=f"generated-{role}", kind="Agent", agent={}, prompts={}, price="$1")
    for role in ("base", "guide")
}


@pytest.fixture(scope="module")
def parts() -> list[ft.Traces]:
    return ft.generate("hotpotqa-llama2-7b", 900).split(0.3, 0.3, 0.4, seed=3)


def test_parts_have_no_question_in_common_and_leave_none_out() -> None:
    whole = ft.generate("mmlu-llama2-7b", 101)
    parts = whole.split(0.29, 0.41, 0.3)
    ids = [set(part.arrays.ids.tolist()) for part in parts]
    assert [len(part) for part in ids] == [29, 41, 31]
    assert set.union(*ids) == set(whole.arrays.ids.tolist())


def test_the_threshold_is_that_of_the_held_out_questions(parts: list[ft.Traces]) -> None:
    train, held_out, _ = parts
    trained = ft.fit("stopping", train, alpha=0.2)
    policy = trained.calibrate(held_out)
    critical = replay(policy.bundle.policy, held_out.arrays, policy.bundle.empty).critical
    assert policy.certificate is not None
    assert policy.certificate == split.certify(
        critical, Fraction(1, 5), fingerprint=fingerprint(held_out.arrays)
    )
    assert policy.certificate.kappa == policy.bundle.kappa
    assert trained.certificate is None  # the one before is unchanged
    stricter = trained.calibrate(held_out, ft.Coverage(0.9)).certificate
    assert stricter == split.certify(critical, "0.1", fingerprint=fingerprint(held_out.arrays))


def test_operating_points_come_from_the_training_questions(parts: list[ft.Traces]) -> None:
    train, held_out, _ = parts
    trained = ft.fit("stopping", train)
    wanted = ft.Parity("guide", epsilon=0.2)
    half = held_out.take(np.arange(0, len(held_out), 2))
    points = [trained.calibrate(part, wanted).certificate for part in (held_out, half)]
    assert points[0] is not None
    assert points[1] is not None
    assert points[0].promise.points == points[1].promise.points > 1  # type: ignore[attr-defined]


def test_questions_that_trained_prove_nothing(parts: list[ft.Traces]) -> None:
    train, held_out, _ = parts
    trained = ft.fit("stopping", train)
    with pytest.raises(InputError, match="trained the policy"):
        trained.calibrate(train)
    policy = trained.calibrate(held_out)
    with pytest.raises(InputError, match="training questions"):
        ft.Policy(policy.bundle).calibrate(held_out, ft.Selective(0.5))


def test_a_store_tells_the_bundle_what_its_traces_were_made_with(tmp_path: Path) -> None:
    config = preset("hotpotqa-llama2-7b").config
    path = tmp_path / "traces.db"
    with Store.open(path) as store:
        store.made_with(SYSTEM)
        for trace in generate_traces(config, 300, np.random.default_rng(0)):
            store.append(trace, "collect")
    train, held_out = ft.read_traces(path).split(0.5, 0.5)
    trained = ft.fit("stopping", train)
    assert trained.bundle.origin.system == SYSTEM
    policy = trained.calibrate(held_out)
    policy.save(tmp_path / "bundle")
    assert bundles.load(tmp_path / "bundle").origin.system == SYSTEM
    assert ft.load(tmp_path / "bundle").certificate == policy.certificate
    models = {
        role: ScriptedModel(lambda _: "Answer: 2", name=f"generated-{role}") for role in SYSTEM
    }
    answer = asyncio.run(policy.answer("What is 1 + 1?", models))
    assert not answer.guaranteed
    assert "(BaseAgent instead of Agent)" in answer.promise


def test_a_policy_shows_itself_in_a_line(parts: list[ft.Traces]) -> None:
    trained = ft.fit("fixed-2", parts[0])
    assert repr(trained) == "<fixed-2: nothing is promised yet>"
    shown = repr(ft.fit("stopping", parts[0]).calibrate(parts[1]))
    assert shown.startswith("<stopping: A new question is covered")
    assert len(shown) < 400


def test_a_bundle_from_a_folder_proves_again_what_it_proved(
    parts: list[ft.Traces], tmp_path: Path
) -> None:
    train, held_out, _ = parts
    policy = ft.fit("stopping", train, alpha=0.2).calibrate(held_out)
    policy.save(tmp_path / "b")
    assert ft.load(tmp_path / "b").calibrate(held_out).certificate == policy.certificate
    ft.fit("stopping", train).save(tmp_path / "c")
    with pytest.raises(InputError, match="say what is to be proved"):
        ft.load(tmp_path / "c").calibrate(held_out)


def test_figures_on_questions_that_trained_say_so(parts: list[ft.Traces]) -> None:
    trained = ft.fit("stopping", parts[0])
    flattering = str(trained.evaluate(parts[0]))
    assert "note: 270 of the 270 test questions trained the policy" in flattering
    assert "note:" not in str(trained.evaluate(parts[2]))


def test_wrong_input_is_refused_in_a_line(parts: list[ft.Traces]) -> None:
    train, held_out, _ = parts
    trained = ft.fit("fixed-1", train)
    wrong: dict[str, Callable[[], object]] = {
        "0.9 is no promise": lambda: trained.calibrate(held_out, 0.9),  # type: ignore[arg-type]
        "give more": lambda: train.split(0.0001, 0.5),
        "above 0": lambda: train.split(float("nan")),
        "cannot be made up": lambda: ft.generate("hotpotqa-llama2-7b", -3),
        "0 splits": lambda: ft.compare(train, splits=0),
        "unknown policy 'lazi'": lambda: ft.compare(train, "lazi"),
        "infinite": lambda: ft.from_records([{"id": 1, "model": "m", "cost_usd": float("inf")}]),
        "the budget is": lambda: asyncio.run(trained.answer("?", {}, budget_usd=-1)),
    }
    for message, call in wrong.items():
        with pytest.raises(FarthingError, match=message):
            call()


def test_another_model_under_the_name_of_a_role_ends_the_promise() -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"id": f"q{i}", "model": model, "correct": bool(rng.random() < skill), "cost_usd": cost}
        for i in range(300)
        for model, skill, cost in (("small", 0.6, 0.0001), ("large", 0.95, 0.001))
    ]
    for row in rows:
        row["answer"] = "4" if row["correct"] else "5"
    train, held_out = ft.from_records(rows).split(0.5, 0.5)
    policy = ft.fit("lazy", train).calibrate(held_out)

    def ask(name: str) -> tuple[bool, str]:
        models = {
            "small": ScriptedModel(lambda _: "Answer: 4", name="small"),
            "large": ScriptedModel(lambda _: "Answer: 4", name=name),
        }
        answer = asyncio.run(policy.answer("What is 2 + 2?", models))
        return answer.guaranteed, answer.promise

    assert ask("large")[0]
    guaranteed, promise = ask("huge")
    assert not guaranteed
    assert "made for the models small and large, and these are small and huge" in promise


def test_a_model_without_costs_is_said_to_count_as_free() -> None:
    calls = [("small", 0.001), ("large", None)]
    call = {"id": 1, "answer": "4", "correct": True}
    rows = [{**call, "model": model, "cost_usd": usd} for model, usd in calls]
    with pytest.warns(UserWarning, match="no call of large has a cost, so it counts as free"):
        ft.from_records(rows)
