"""What the tools themselves wrote, each with its version in its name, and what becomes of it.

Made without a provider: inspect-ai by its `mockllm`, with the model as its own judge; litellm by
`mock_response` and a callback; llm by a model of a plugin. Fields that say nothing of a call are
left out, and long texts are cut.
"""

from pathlib import Path

from farthing.traces.importers.read import Imported, read_foreign, sniffed

EXPORTS = Path(__file__).parent / "exports"


def read(name: str, form: str) -> Imported:
    assert sniffed(EXPORTS / name) == form
    return read_foreign([EXPORTS / name])


def test_inspect() -> None:
    """The judge took 3,000 tokens for each answer; the second one was taken away by a filter."""
    first, second = read("inspect-ai-0.3.285.json", "inspect").traces
    (answered,), (refused,) = first.calls, second.calls
    assert (answered.answer, answered.correct) == ("It is 4.", True)
    assert (answered.input_tokens, answered.output_tokens) == (1_000, 10)
    assert answered.extra == {"cached_tokens": 900.0}
    assert refused.error is not None
    assert (refused.answer, refused.correct, refused.error.type) == (None, None, "filtered")


def test_litellm() -> None:
    (trace,) = read("litellm-1.110.2.jsonl", "litellm").traces
    assert (trace.question, trace.system_prompt, trace.requests) == (
        "What is 2 + 2?",
        "Be brief.",
        2,
    )
    assert [(c.role, c.answer, c.cost_usd) for c in trace.calls] == [
        ("gpt-4o", "4", 0.00022500000000000002),
        ("gpt-4o-mini", "4", 1.35e-05),
    ]


def test_llm() -> None:
    first, second, third = read("llm-0.36.json", "llm").traces
    assert [(c.role, c.answer) for c in first.calls] == [("mine", "5"), ("other", "5")]
    assert first.calls[0].extra == {"cached_tokens": 5.0}
    assert (first.system_prompt, third.system_prompt) == ("Be brief.", "Answer in French.")
    assert second.history == "user: What is 2 + 3?\n\nassistant: 5"
