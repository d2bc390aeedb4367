"""What people who know scikit-learn and pandas try first, from Python."""

import subprocess
import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec import structs

import farthing as ft
from farthing import plugins
from farthing.errors import BundleError, InputError
from farthing.methods.base import Fitted, Method
from farthing.process.base import NOTHING, Decision
from farthing.process.batch_replay import descending_grid, point_at
from farthing.traces.base import Trace


@pytest.fixture(scope="module")
def tickets(tmp_path_factory: pytest.TempPathFactory) -> ft.Traces:
    file = ft.sample_log(tmp_path_factory.mktemp("log") / "t.jsonl")
    found: ft.Traces = quietly(lambda: ft.read_traces(file))
    return found


def quietly(read: Any) -> Any:
    with warnings.catch_warnings(action="ignore"):
        return read()


@pytest.mark.slow
def test_questions_iterate_index_and_name_their_models(tickets: ft.Traces) -> None:
    assert tickets.models == ("small", "medium", "large")
    listed = list(tickets)
    assert len(listed) == 2_000
    assert all(isinstance(each, Trace) for each in listed)
    assert [each.id for each in listed] == tickets.arrays.ids.tolist()
    assert tickets[-1] == listed[-1]
    assert tickets[np.int64(3)] == listed[3]
    with pytest.raises(IndexError):
        tickets[2_000]
    for some, places in (
        (tickets[5:9], [5, 6, 7, 8]),
        (tickets[[7, 2]], [7, 2]),
        (tickets[np.arange(2_000) < 3], [0, 1, 2]),
    ):
        assert list(some) == [listed[place] for place in places]
        assert some.arrays.ids.tolist() == [listed[place].id for place in places]
    train, rest = tickets.split(0.5, 0.5)
    assert {each.id for each in train} | {each.id for each in rest} == {each.id for each in listed}


@pytest.mark.slow
def test_a_frame_is_read_again_as_it_was(tickets: ft.Traces) -> None:
    frame = tickets.to_frame()
    assert len(frame) == sum(len(each.calls) for each in tickets)
    for same in (frame, frame.convert_dtypes()):
        again = quietly(lambda same=same: ft.from_records(same))
        for name in ("answer", "cost_nano", "made", "correct", "ungraded", "content", "context"):
            np.testing.assert_array_equal(
                getattr(again.arrays, name), getattr(tickets.arrays, name), err_msg=name
            )
        assert again.arrays.signals.keys() == tickets.arrays.signals.keys()
        assert list(map(ungraded, again)) == list(tickets)


def ungraded(trace: Trace) -> Trace:
    """Leave out what the frame adds: that a call without an answer is not right."""
    calls = [structs.replace(call, correct=None) for call in trace.calls]
    return structs.replace(trace, calls=calls)


def test_made_up_questions_have_a_frame_with_numbers_for_answers() -> None:
    made = ft.generate("mmlu-llama2-7b", 30)
    frame = made.to_frame()
    again = ft.from_records(frame)
    np.testing.assert_array_equal(again.arrays.cost_nano, made.arrays.cost_nano)
    np.testing.assert_array_equal(again.arrays.correct, made.arrays.correct)
    assert list(frame["correct"][:2]) == [bool(c.correct) for c in made[0].calls[:2]]


def test_without_pandas_a_frame_is_refused_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="not installed: pip install pandas"):
        ft.generate("mmlu-llama2-7b", 3).to_frame()


CSV = """prompt,llm,response,is correct,Cost ($),latency_ms
2 + 2?,small,4,yes,0.00001,300
2 + 2?,large,4,yes,0.001,900
3 + 3?,small,7,no,0.00001,310
3 + 3?,large,6,yes,0.001,800
"""


def test_a_frame_reads_as_the_csv_that_it_was_read_from(tmp_path: Path) -> None:
    (tmp_path / "calls.csv").write_text(CSV)
    from_file = quietly(lambda: ft.read_traces(tmp_path / "calls.csv"))
    frame = pd.read_csv(tmp_path / "calls.csv")
    for given in (frame, frame.to_dict("records")):
        from_memory = quietly(lambda given=given: ft.from_records(given))
        assert list(from_memory) == list(from_file)
    assert from_file[1].calls[0].cost_usd == 1e-05
    assert from_file[1].calls[0].latency_s == 0.31


def test_columns_of_other_names_and_prices_are_said_in_python(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "key": ["a", "a"],
            "who": ["small", "large"],
            "said": ["4", "5"],
            "input_tokens": [1_000, 1_000],
            "output_tokens": [10, 10],
        }
    )
    with pytest.raises(InputError, match=r'map one with columns=\{"model": "COLUMN"\}'):
        ft.from_records(frame)
    columns = {"id": "key", "model": "who", "answer": "said"}
    prices = {"small": (0.1, 0.4), "large": (2.5, 10)}
    found = quietly(lambda: ft.from_records(frame, columns=columns, prices=prices))
    assert {call.role: call.cost_usd for call in found[0].calls} == {
        "small": pytest.approx(0.000104),
        "large": pytest.approx(0.0026),
    }
    frame.to_csv(tmp_path / "calls.csv", index=False)
    read = quietly(lambda: ft.read_traces(tmp_path / "calls.csv", columns=columns, prices=prices))
    assert list(read) == list(found)
    with pytest.raises(InputError, match=r"price of small is \(1,\); give US dollars per million"):
        ft.from_records(frame, columns=columns, prices={"small": (1,)})  # type: ignore[dict-item]


@pytest.mark.slow
def test_messages_name_arguments(tickets: ft.Traces, tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ft.read_traces(ft.sample_log(tmp_path / "log.jsonl"))
    found = quietly(lambda: ft.recommend(tickets[:900], ft.Agreement(epsilon=0.1)))
    texts = [*(str(each.message) for each in said), *found.to_json()["notes"]]
    assert not [text for text in texts if "--" in text]
    assert any("gold=FILE" in text for text in texts)
    assert any("name the model you pay for with reference" in text for text in texts)
    with pytest.raises(InputError, match="a larger most_usd"):
        ft.fit("always-small", graded_pool()[:100]).calibrate(
            graded_pool()[100:], ft.Budget(0.005, most_usd=0.0055)
        )


def test_predictions_are_what_the_evaluation_counts(tickets: ft.Traces) -> None:
    train, rest = tickets.split(0.4, 0.6)
    policy = ft.fit("agreement-cascade", train, grade="same as large").calibrate(
        rest, ft.Agreement("large", 0.1)
    )
    found = policy.predict(tickets)
    assert [each.id for each in found] == tickets.arrays.ids.tolist()
    lacking = ~tickets.arrays.made.all(axis=(1, 2))
    assert [not each.known for each in found] == lacking.tolist()
    known = [(each, tickets[i]) for i, each in enumerate(found) if each.known]
    measured = policy.evaluate(tickets).metrics
    assert np.mean([each.cost_usd for each, _ in known]) == pytest.approx(measured["cost_usd"])
    same = [
        each.best is not None
        and plain(each.best) == plain(next(c.answer for c in q.calls if c.role == "large"))
        for each, q in known
    ]
    assert np.mean(same) == pytest.approx(measured["accuracy"])
    assert all(each.best in each.answers for each, _ in known if each.best is not None)


def plain(answer: str | None) -> str | None:
    return None if answer is None else answer.casefold().rstrip(".")


def test_a_proved_bundle_is_not_written_over(tickets: ft.Traces, tmp_path: Path) -> None:
    train, rest = tickets.split(0.4, 0.6)
    trained = ft.fit("agreement-cascade", train, grade="same as large")
    trained.save(tmp_path / "b")
    proved = trained.calibrate(rest, ft.Agreement("large", 0.1))
    proved.save(tmp_path / "b")  # nothing was promised before
    proved.save(tmp_path / "b")  # a cell that is run again
    other = trained.calibrate(rest, ft.Agreement("large", 0.2))
    with pytest.raises(BundleError, match="holds a proved bundle, whose promise would be lost"):
        other.save(tmp_path / "b")
    assert ft.load(tmp_path / "b").certificate == proved.certificate


@dataclass(frozen=True)
class FirstFew:
    """Asks the cheapest models, up to so many."""

    most: int
    space: str = "calls"
    stochastic: bool = False

    @property
    def parameters(self) -> Any:
        return descending_grid(self.most)

    def decide(self, state: Any) -> Decision:
        unasked = state.can_buy & (state.bought == 0)
        line = np.where(unasked.any(axis=1), unasked.argmax(axis=1), NOTHING)
        go_on = float(state.turn <= point_at(self.parameters, state.parameter))
        single = state.latest[:, 0] if state.turn else None
        return Decision(line, np.full(len(state), go_on), np.ones((len(state), 1)), single)

    def to_state(self) -> Any:
        return {}, {"most": self.most}

    @classmethod
    def from_state(cls, arrays: Any, settings: Any) -> "FirstFew":
        return cls(settings["most"])


class FirstFewLearner:
    """Learns nothing."""

    def fit(self, train: Any, alpha: Any, seed: Any, progress: Any) -> Fitted:
        return Fitted(FirstFew(train.n_roles))  # type: ignore[arg-type]


@pytest.fixture
def unregistered() -> Any:
    yield
    for name in ("first-few", "mine"):
        plugins.remove("methods", name)


def graded_pool() -> ft.Traces:
    rng = np.random.default_rng(0)
    rows = [
        {
            "id": f"q{i}",
            "gold": ["yes"],
            "independent": True,
            "model": model,
            "answer": "yes" if rng.random() < skill else "no",
            "cost_usd": usd,
        }
        for i in range(300)
        for model, skill, usd in (("small", 0.7, 0.001), ("large", 0.95, 0.01))
    ]
    return ft.from_records(rows)


def test_a_learner_of_a_script_is_trained_proved_saved_and_loaded(
    unregistered: Any, tmp_path: Path
) -> None:
    train, held_out, test = graded_pool().split(0.3, 0.4, 0.3)
    policy = ft.fit(FirstFewLearner(), train).calibrate(held_out)
    assert policy.method == "first-few"
    assert policy.certificate is not None
    policy.save(tmp_path / "b")
    again = ft.load(tmp_path / "b")
    assert isinstance(again.bundle.policy, FirstFew)
    assert again.predict(test) == policy.predict(test)
    assert [row["policy"] for row in ft.compare(test, ["first-few"], splits=3).rows] == [
        "first-few"
    ]


def test_a_card_of_a_script_is_a_method_and_ours_are_not_replaced(unregistered: Any) -> None:
    card = Method("mine", "Mine", "Mine", FirstFew, FirstFewLearner(), action_spaces=("pool",))
    assert ft.fit(card, graded_pool()).method == "mine"
    assert ft.fit("mine", graded_pool()).method == "mine"
    with pytest.raises(InputError, match="there is a method 'lazy' already; give yours another"):
        ft.fit(replace(card, name="lazy"), graded_pool())
    with pytest.raises(InputError, match="give a name, such as 'lookahead', or an object with"):
        ft.fit(FirstFewLearner, graded_pool())  # type: ignore[arg-type]


@pytest.mark.slow
def test_importing_it_loads_no_pandas() -> None:
    program = (
        "import sys, farthing as ft\n"
        "ft.from_records([{'id': 'q', 'model': m, 'answer': '4', 'correct': True, 'cost_usd': 1}\n"
        "    for m in 'ab'])\n"
        "print('pandas' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "False"
