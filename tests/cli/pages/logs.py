"""Writes the logs that docs/how-to/importing.md imports."""

import json
from pathlib import Path

QUESTIONS = ("2 + 2?", "3 + 3?")
ANSWERS = {"gpt-4o-mini": ("4", "7"), "house-model": ("4", "6")}


def write_spend() -> None:
    """Write `spend.jsonl`, LiteLLM's log of two questions to two models, as the page has it."""
    with Path("spend.jsonl").open("w") as file:
        for model, answers in ANSWERS.items():
            for question, answer in zip(QUESTIONS, answers, strict=True):
                message = {"role": "assistant", "content": answer}
                row = {
                    "request_id": f"{model} {question}",
                    "model": model,
                    "spend": 0.0,
                    "call_type": "acompletion",
                    "prompt_tokens": 1_000,
                    "completion_tokens": 100,
                    "messages": [{"role": "user", "content": question}],
                    "response": {"choices": [{"message": message}]},
                }
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    write_spend()
