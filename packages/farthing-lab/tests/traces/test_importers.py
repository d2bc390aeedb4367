"""Tables of benchmarks of routers: held to what every importer is, then call by call."""

import json
from pathlib import Path

from imported_alike import *  # noqa: F403
from imported_alike import (
    MODELS,
    QUESTIONS,
    REPLIES,
    SECRET,
    Line,
    csv_text,
    lines,
    notes,
    only,
    plain,
    read,
    refusal_of,
    write,
)

from farthing.traces.importers.read import read_foreign

PACKAGE = "farthing-lab"

WIDE = [
    {"sample_id": f"gsm.{i}", "prompt": repr([q]), "eval_name": "gsm"}
    | {m: float(REPLIES[q, m] == gold) for m in MODELS}
    | {f"{m}|model_response": repr([REPLIES[q, m]]) for m in MODELS}
    | {f"{m}|total_cost": 0.001 for m in MODELS}
    | {"oracle_model_to_route_to": "gpt-4o"}
    for i, (q, gold) in enumerate(QUESTIONS.items())
]


def bench_result(model: str) -> Line:
    records = [
        {
            "index": i,
            "origin_query": q.removesuffix("?"),
            "prompt": q,
            "prompt_tokens": 10,
            "completion_tokens": 2,
            "cost": 0.002,
            "score": float(REPLIES[q, model] == gold),
            "prediction": REPLIES[q, model],
            "ground_truth": gold,
            "raw_output": REPLIES[q, model],
            "extra_fields": {},
        }
        for i, (q, gold) in enumerate(QUESTIONS.items(), start=1)
    ]
    about = {"model_name": model, "dataset_name": "sums", "split": "test", "demo": False}
    return {"performance": 0.5, "cost": 0.004, "counts": 2, **about, "records": records}


def arena_reply(reply: str) -> Line:
    usage = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
    return {
        "generated_answer": reply,
        "success": True,
        "token_usage": usage,
        "provider": "openai",
        "error": None,
    }


CACHED = [
    {"global_index": f"Sums_{q[0]}", "question": q, "llm_selected": m, **arena_reply(reply)}
    | {
        "evaluation_result": {
            "extracted_answer": reply,
            "ground_truth": QUESTIONS[q],
            "score": float(reply == QUESTIONS[q]),
            "metric": "exact",
            "inference_cost": 0.002,
        },
        "run_number": 1,
    }
    for (q, m), reply in REPLIES.items()
]
CHOSEN = [
    {
        "global index": f"Sums_{q[0]}",
        "prompt": q,
        "prediction": m,
        "generated_result": arena_reply(reply),
        "cost": 0.002,
        "accuracy": float(reply == QUESTIONS[q]),
    }
    for (q, m), reply in REPLIES.items()
]
SAMPLES: dict[str, dict[str, str]] = {
    "routerbench": {"wide.csv": csv_text(WIDE), "wide.jsonl": lines(WIDE)},
    "llmrouterbench": {"bench.json": json.dumps(bench_result("gpt-4o"), indent=2)},
    "routerarena": {
        "cached.jsonl": lines(CACHED),
        "predictions.json": json.dumps(CHOSEN, indent=2),
    },
}
"""Format to files that hold the same calls."""
OF_ONE_MODEL = {"llmrouterbench"}


def test_the_wide_table_says_exactly_this(folder: Path) -> None:
    (trace, _) = only(folder, "a.csv", SAMPLES["routerbench"]["wide.csv"])
    assert (trace.id, trace.group, trace.gold) == ("gsm.0", "gsm", [])
    assert [plain(trace)["calls"][i] for i in (0, 1)] == [
        {
            "round": 1,
            "role": model,
            "model": model,
            "answer": "4",
            "text": "4",
            "correct": True,
            "score": 1.0,
            "cost_usd": 0.001,
        }
        for model in MODELS
    ]


def test_a_model_without_score_and_reply_is_missing_there(folder: Path) -> None:
    wide: list[Line] = [WIDE[0] | {"gpt-4o": float("nan"), "gpt-4o|model_response": None}, WIDE[1]]
    assert [len(trace.calls) for trace in only(folder, "a.jsonl", lines(wide))] == [1, 2]


def test_a_result_of_llmrouterbench_says_exactly_this(folder: Path) -> None:
    sums = read(folder, "bench.json").traces
    assert plain(sums[1]) == {
        "id": "sums-test-2",
        "task": "text",
        "group": "sums",
        "question": "3 + 3?",
        "gold": ["6"],
        "calls": [
            {
                "round": 1,
                "role": "gpt-4o",
                "model": "gpt-4o",
                "answer": "6",
                "correct": True,
                "score": 1.0,
                "text": "6",
                "input_tokens": 10,
                "output_tokens": 2,
                "cost_usd": 0.002,
            }
        ],
        "independent": True,
    }


def test_results_of_several_models_are_one_pool(folder: Path) -> None:
    files = [
        write(folder, f"{m}.json", json.dumps(bench_result(m), indent=1)) for m in reversed(MODELS)
    ]
    traces = read_foreign(files).traces
    assert [[c.role for c in trace.calls] for trace in traces] == [["gpt-4o", "gpt-4o-mini"]] * 2
    assert [call.correct for call in traces[1].calls] == [True, False]


def test_what_llmrouterbench_does_not_say_is_unknown(folder: Path) -> None:
    """No price, no score, no accepted answer, no reply, and the same question twice."""
    result = bench_result("gpt-4o") | {"model_name": "house-model"}
    first, second = result["records"]
    failure = "Processing failed: 401, key " + SECRET
    first |= {"score": None, "prediction": "", "raw_output": failure, "cost": 0.0}
    first |= {"prompt_tokens": 0, "completion_tokens": 0, "ground_truth": {"tests": [1]}}
    second |= {"cost": 0.0, "score": None, "ground_truth": None}
    result["records"] += [second | {"score": 0.0, "prediction": "7", "raw_output": "7"}]
    result["records"] += [{"index": 4, "prompt": "", "score": 1.0}]
    result["demo"] = True
    traces = only(folder, "odd.json", result)
    failed, call = traces[0].calls[0], traces[1].calls[0]
    assert (failed.correct, failed.answer, failed.cost_usd) == (None, None, None)
    assert failed.input_tokens is None
    assert failed.error is not None
    assert SECRET not in failed.error.message
    assert (traces[0].gold, traces[1].gold) == ([], [])
    assert (call.correct, call.score, call.answer, call.cost_usd) == (None, None, "6", None)
    said = notes(folder, "odd.json", result)
    assert "a record without its prompt" in said
    assert "trial run" in said
    del result["model_name"]
    assert refusal_of(folder, "odd.json", result).startswith("odd.json, model_name: is missing")


def test_results_of_routerarena_say_exactly_this(folder: Path) -> None:
    cached, chosen = (read(folder, name).traces for name in ("cached.jsonl", "predictions.json"))
    expected = {
        "round": 1,
        "role": "gpt-4o",
        "model": "gpt-4o",
        "answer": "6",
        "correct": True,
        "score": 1.0,
        "text": "6",
        "input_tokens": 10,
        "output_tokens": 2,
        "cost_usd": 0.002,
    }
    for traces in (cached, chosen):
        assert plain(traces[1])["calls"][1] == expected
        assert (traces[1].id, traces[1].group, traces[1].gold) == ("Sums_3", "Sums", ["6"])


def test_what_routerarena_does_not_say_is_unknown(folder: Path) -> None:
    """A failure, no price, no evaluation, a repeat, an entry not asked yet, one without a model."""
    mini, large, *_ = (line | {"llm_selected": f"house-{i}"} for i, line in enumerate(CACHED))
    failed = arena_reply("") | {"success": False, "error": f"429 for {SECRET}"}
    zero = {"score": 0.0, "inference_cost": 0.0}
    traces = only(
        folder,
        "odd.jsonl",
        lines([mini | failed | {"evaluation_result": zero}, large | {"evaluation_result": None}]),
    )
    lost, ungraded = traces[0].calls
    assert (lost.correct, lost.score, lost.cost_usd, lost.input_tokens) == (None, None, None, None)
    assert lost.error is not None
    assert SECRET not in lost.error.message
    assert (ungraded.correct, ungraded.cost_usd, ungraded.answer) == (None, None, "4")
    assert traces[0].gold == []
    asked = CHOSEN[0] | {"prediction": "house-0"}
    entries = [
        asked | {"cost": None, "accuracy": None},
        asked | {"accuracy": 0.0, "generated_result": arena_reply("5")},
        asked | {"global index": "Sums_9", "prompt": "9 + 9?", "generated_result": None},
        asked | {"prediction": ""},
    ]
    (trace,) = only(folder, "odd.json", entries)
    assert [(c.answer, c.correct, c.cost_usd) for c in trace.calls] == [("4", None, None)]
    said = notes(folder, "odd.json", entries)
    assert "an entry whose model was not asked yet" in said
    assert "an entry without the model that was chosen" in said


def test_an_answer_that_routerarena_read_off_a_reply_is_kept(folder: Path) -> None:
    line = dict(CACHED[0]) | {"generated_answer": "It is \\boxed{4}."}
    (trace,) = only(folder, "read.jsonl", lines([line, dict(CACHED[1])]))
    assert (trace.calls[0].answer, trace.calls[0].text) == ("4", "It is \\boxed{4}.")
