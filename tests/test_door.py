"""The Python door passes each part of the questions to whom it is for."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import farthing as ft
from farthing.bundle import folder as bundles
from farthing.errors import InputError
from farthing.models.scripted import ScriptedModel
from farthing.process.batch_replay import replay
from farthing.promises.kinds import split
from farthing.traces.fingerprint import fingerprint
from farthing.traces.store import Store
from farthing.traces.system import RoleSetup
from farthing_lab.api.functions import generate
from farthing_lab.generator.generate import generate_traces
from farthing_lab.generator.presets import preset

SYSTEM = {
    role: RoleSetup(model=f"generated-{role}", kind="Agent", agent={}, prompts={}, price="$1")
    for role in ("base", "guide")
}


@pytest.fixture(scope="module")
def parts() -> list[ft.Traces]:
    return generate("hotpotqa-llama2-7b", 900).split(0.3, 0.3, 0.4, seed=3)


def test_parts_have_no_question_in_common_and_leave_none_out() -> None:
    whole = ft.generate("mmlu-llama2-7b", 101)
    parts = whole.split(0.29, 0.41, 0.3)
    ids = [set(part.arrays.ids.tolist()) for part in parts]
    assert [len(part) for part in ids] == [29, 41, 31]
    assert set.union(*ids) == set(whole.arrays.ids.tolist())


def marked(traces: ft.Traces, *marks: int) -> ft.Traces:
    """Return the questions with these marks, one after another, again and again."""
    split = np.resize(np.array(marks, dtype=np.int8), len(traces))
    return ft.Traces(replace(traces.dataset, traces=replace(traces.arrays, split=split)))


def test_parts_keep_to_what_the_file_marks() -> None:
    whole = ft.generate("mmlu-llama2-7b", 100)
    train, held_out = marked(whole, 0, -1, 2, -1).split(0.6, 0.4)
    assert set(train.arrays.split.tolist()) == {0}
    assert set(held_out.arrays.split.tolist()) == {-1, 2}
    assert (len(train), len(held_out)) == (25, 75)
    parts = marked(whole, 0, 1, 2, -1).split(0.1, 0.1, 0.8)
    assert [set(part.arrays.split.tolist()) for part in parts] == [{0}, {1}, {2}]
    with pytest.raises(InputError, match="100 of them marked to train"):
        marked(whole, 0).split(0.5, 0.5)


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


@pytest.mark.slow
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


ROWS: list[dict[str, Any]] = [
    {"id": f"q{i}", "model": model, "answer": "4", "correct": True, "cost_usd": usd}
    for i in range(40)
    for model, usd in (("small", 0.0001), ("large", 0.001))
]
SILENT = ScriptedModel(lambda _: "Answer: 4", name="small")
Wrong = Callable[[ft.Traces, ft.Policy, Path], object]


def _ask(policy: ft.Policy, *given: Any, **more: Any) -> object:
    return asyncio.run(policy.answer(*given, **more))


WRONG: dict[str, tuple[str, Wrong]] = {
    # what the questions are made of
    "one record": (
        "of type dict; give a list",
        lambda t, p, f: ft.from_records(cast("Any", ROWS[0])),
    ),
    "no record": ("there are no records", lambda t, p, f: ft.from_records([])),
    "records None": ("of type NoneType", lambda t, p, f: ft.from_records(cast("Any", None))),
    "a record of a number": ("record 2 is", lambda t, p, f: ft.from_records([ROWS[0], 3])),  # type: ignore[list-item]
    "an object": ("no JSON", lambda t, p, f: ft.from_records([{**ROWS[0], "answer": object()}])),
    "infinity": ("infinite", lambda t, p, f: ft.from_records([{**ROWS[0], "f1": float("inf")}])),
    "no path": ("path of the traces is None", lambda t, p, f: ft.read_traces(cast("Any", None))),
    "no preset": ("the preset is None", lambda t, p, f: ft.generate(cast("Any", None), 3)),
    "too few": ("number of questions is -3", lambda t, p, f: ft.generate("mmlu-llama2-7b", -3)),
    "generate's seed": ("seed is -1", lambda t, p, f: ft.generate("mmlu-llama2-7b", 3, seed=-1)),
    # how they are divided
    "a share of text": ("shares are", lambda t, p, f: t.split(cast("Any", "a"))),
    "shares as a list": ("shares are", lambda t, p, f: t.split(cast("Any", [0.5, 0.5]))),
    "a share of NaN": ("above 0", lambda t, p, f: t.split(float("nan"))),
    "a small share": ("give more", lambda t, p, f: t.split(0.0001, 0.5)),
    "split's seed": ("seed is -1", lambda t, p, f: t.split(0.5, seed=-1)),
    "no such question": ("cannot be taken", lambda t, p, f: t.take(np.array([10_000]))),
    "no question": ("cannot be taken", lambda t, p, f: t.take(np.array([], dtype=int))),
    # training, calibration, evaluation
    "no method": ("the method is None", lambda t, p, f: ft.fit(cast("Any", None), t)),
    "no questions": ("training questions are", lambda t, p, f: ft.fit("fixed-1", t.arrays)),  # type: ignore[arg-type]
    "alpha": ("alpha is high; give", lambda t, p, f: ft.fit("fixed-1", t, "high")),
    "fit's seed": ("seed is -1", lambda t, p, f: ft.fit("fixed-1", t, seed=-1)),
    "features": (
        "features are None",
        lambda t, p, f: ft.fit("fixed-1", t, features=cast("Any", None)),
    ),
    "no promise": ("0.9 is no promise", lambda t, p, f: p.calibrate(t, cast("Any", 0.9))),
    "held out": ("held-out questions are", lambda t, p, f: p.calibrate(cast("Any", None))),
    "a budget": ("budget_usd is 'x'", lambda t, p, f: p.calibrate(t, budget_usd=cast("Any", "x"))),
    "bounds": (
        "largest_usd is 3",
        lambda t, p, f: p.calibrate(t, budget_usd=1, largest_usd=cast("Any", 3)),
    ),
    "a bound": (
        "of base is -1",
        lambda t, p, f: p.calibrate(t, budget_usd=1, largest_usd={"base": -1}),
    ),
    "test": ("test questions are", lambda t, p, f: p.evaluate(cast("Any", None))),
    "evaluate's seed": ("seed is -1", lambda t, p, f: p.evaluate(t, seed=-1)),
    # promises
    "a level": ("level of a promise is high; give", lambda t, p, f: ft.Coverage("high")),
    "a delta": ("delta is 3", lambda t, p, f: ft.Coverage(0.9, delta=3)),
    "a population": (
        "population is 'x'",
        lambda t, p, f: ft.Coverage(0.9, population=cast("Any", "x")),
    ),
    "no level": ("level of a promise is None", lambda t, p, f: ft.Selective(cast("Any", None))),
    "a reference": ("the reference is 3", lambda t, p, f: ft.Parity(cast("Any", 3))),
    "an epsilon": ("epsilon is -1", lambda t, p, f: ft.Parity("base", epsilon=-1)),
    "a budget's delta": ("delta is 7", lambda t, p, f: ft.Budget(0.1, 1, delta=7)),
    "a target": ("new mix are None", lambda t, p, f: ft.Shift(0.9, cast("Any", None))),
    "a shift's level": ("level of a promise is 0", lambda t, p, f: ft.Shift(0, t)),
    # files
    "no bundle": ("path of the bundle is None", lambda t, p, f: ft.load(cast("Any", None))),
    "below a file": ("cannot be written", lambda t, p, f: p.save(f / "a file" / "b")),
    "no folder": ("/proc/impossible: cannot be", lambda t, p, f: p.save("/proc/impossible")),
    "no name": ("a folder of its own", lambda t, p, f: p.save(".")),
    # live models
    "a name": ("model of small is 'gpt-4o'", lambda t, p, f: _ask(p, "q", {"small": "gpt-4o"})),
    "a class": ("model of small is", lambda t, p, f: _ask(p, "q", {"small": ScriptedModel})),
    "a list": ("models are", lambda t, p, f: _ask(p, "q", [SILENT])),
    "no text": ("the question is None", lambda t, p, f: _ask(p, None, {})),
    "blank": ("the question is ' '", lambda t, p, f: _ask(p, " ", {})),
    "no task": ("the task is None", lambda t, p, f: _ask(p, "q", {}, task=None)),
    "below 0": ("budget_usd is -1", lambda t, p, f: _ask(p, "q", {}, budget_usd=-1)),
    "all money": ("budget_usd is inf", lambda t, p, f: _ask(p, "q", {}, budget_usd=float("inf"))),
    # comparisons
    "methods": (r"methods are \[1\]", lambda t, p, f: ft.compare(t, cast("Any", [1]))),
    "no methods": ("no method is named", lambda t, p, f: ft.compare(t, [])),
    "unknown": ("unknown policy 'lazi'", lambda t, p, f: ft.compare(t, "lazi")),
    "splits": ("splits is 0", lambda t, p, f: ft.compare(t, splits=0)),
    "compare's seed": ("seed is -1", lambda t, p, f: ft.compare(t, ["fixed-1"], seed=-1)),
    "nothing": ("the questions are None", lambda t, p, f: ft.compare(cast("Any", None))),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_refused_in_a_line(
    parts: list[ft.Traces], tmp_path: Path, name: str
) -> None:
    message, call = WRONG[name]
    (tmp_path / "a file").write_text("")
    with pytest.raises(InputError, match=message) as refused:
        call(parts[0], ft.fit("fixed-1", parts[0]), tmp_path)
    assert "\n" not in str(refused.value)


def test_what_a_refusal_asks_for_can_be_given_here(parts: list[ft.Traces]) -> None:
    """Messages that name an option of the command line say how it is called here."""
    train, held_out, _ = parts
    trained = ft.fit("fixed-1", train)
    for given in (None, {"base": 1e-9, "guide": 1.0}, {"guide": 1.0}):
        with pytest.raises(InputError, match=r'\(in Python largest_usd=\{"(base|guide)": USD\}\)'):
            trained.calibrate(held_out, budget_usd=1.0, largest_usd=given)
    with pytest.raises(InputError, match="take other questions, or, on the command line, give"):
        trained.calibrate(train)


def test_a_shift_takes_questions_or_their_arrays(parts: list[ft.Traces]) -> None:
    train, held_out, new = parts
    trained = ft.fit("stopping", train)
    both = [trained.calibrate(held_out, ft.Shift(0.8, of)) for of in (new, new.arrays)]
    assert both[0].certificate == both[1].certificate
    with pytest.raises(InputError, match="which a bundle from a folder does not hold"):
        ft.Policy(trained.bundle).calibrate(held_out, ft.Shift(0.8, new))


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


@pytest.mark.filterwarnings("ignore:no call", "ignore:every call")
def test_nothing_is_said_of_savings_where_costs_are_not_known() -> None:
    def recorded(large: float | None, small: float | None = 0.001) -> ft.Traces:
        costs = {"small": small, "large": large}
        call = {"answer": "4", "correct": True}
        return ft.from_records(
            {"id": f"q{i}", "model": model, "cost_usd": usd, **call}
            for i in range(20)
            for model, usd in costs.items()
        )

    policy = ft.fit("always-small", recorded(0.01))
    for traces, says in (
        (recorded(None), "no call of large has a cost"),
        (recorded(None, None), "no call of these traces has a cost"),
        (recorded(0.0, 0.0), "every cost in these traces is 0, so nothing can be saved"),
    ):
        for refused in (
            lambda: ft.fit("always-small", traces),  # noqa: B023 - called at once
            lambda: ft.recommend(traces),  # noqa: B023
            lambda: ft.compare(traces, ["always-small"]),  # noqa: B023
            lambda: policy.calibrate(traces),  # noqa: B023
            lambda: policy.evaluate(traces),  # noqa: B023
        ):
            with pytest.raises(InputError, match=says):
                refused()
    assert policy.evaluate(recorded(0.01, 0.0)).metrics  # a model that is recorded as free is


@pytest.mark.parametrize("promise", [ft.Parity, ft.Agreement])
def test_one_reference_is_named_or_the_same_twice(promise: Any) -> None:
    traces = ft.from_records(
        {"id": f"q{i}", "model": model, "cost_usd": usd, "answer": "4", "correct": True}
        for i in range(300)
        for model, usd in (("small", 0.001), ("large", 0.01))
    )
    says = "the promise is held against large, and the reference is 'small'; name one of them"
    with pytest.raises(InputError, match=says):
        ft.recommend(traces, promise("large", epsilon="0.3", delta="0.2"), reference="small")
    for given, reference in (("large", "large"), (None, "large"), ("large", None)):
        asked = promise(given, epsilon="0.3", delta="0.2")
        assert ft.recommend(traces, asked, reference=reference).found.reference == "large"
