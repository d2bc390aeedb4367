"""The server stops a thought at its budget, closes it, and goes on to the answer."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError

import pytest

QUESTION = "c=b*7+2;a=4;b=a*3+5;c?"
THOUGHT = "cba;a=4;b=a*3+5=2+5=7;c=b*7+2=9+2=1;"
"""What the network writes before its answer: 27 of its symbols."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    code = "from farthing.cli.main import run; run()"
    arguments = ["lm", "serve", "--model", "large", "--port", "0"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as process:
        assert process.stderr is not None
        try:
            assert process.stderr.readline() == "loading the models\n"
            found = re.search(r"http://127\.0\.0\.1:\d+/v1", process.stderr.readline())
            assert found
            yield found[0]
        finally:
            process.terminate()


def ask(url: str, **more: Any) -> dict[str, Any]:
    body = {"model": "large", "messages": [{"role": "user", "content": QUESTION}]}
    said = json.dumps(body | {"temperature": 0, "max_tokens": 60} | more).encode()
    request = urllib.request.Request(f"{url}/chat/completions", said)
    with urllib.request.urlopen(request, timeout=60) as reply:
        found: dict[str, Any] = json.loads(reply.read())
    return found


def read(reply: dict[str, Any]) -> tuple[str, int, int, int]:
    """Return the text, the tokens read and written, and those of thought."""
    usage = reply["usage"]
    thoughts = usage["completion_tokens_details"]["reasoning_tokens"]
    text = reply["choices"][0]["message"]["content"]
    return text, usage["prompt_tokens"], usage["completion_tokens"], thoughts


def test_a_thought_within_its_budget_is_as_without_one(url: str) -> None:
    free = ask(url)
    assert read(free) == (f"{THOUGHT}<answer>1</answer>", 15, 31, 27)
    assert read(ask(url, thinking_token_budget=28)) == read(free)
    assert read(ask(url, chat_template_kwargs={"enable_thinking": True})) == read(free)


@pytest.mark.parametrize("budget", [1, 10, 20])
def test_a_longer_thought_is_closed_and_answered_from(url: str, budget: int) -> None:
    text, taken, written, thoughts = read(ask(url, thinking_token_budget=budget))
    thought, closed, answer = text.partition("<answer>")
    assert (THOUGHT.startswith(thought), closed) == (True, "<answer>")
    assert (taken, thoughts) == (15, budget)
    assert written == budget + 3  # a digit, the tag that ends it, and the end; the rest was forced
    assert re.fullmatch(r"\d</answer>", answer)


def test_without_thoughts_it_answers_at_once(url: str) -> None:
    text, _, written, thoughts = read(ask(url, thinking={"type": "disabled"}))
    assert re.fullmatch(r"<answer>\d</answer>", text)
    assert (written, thoughts) == (3, 0)


def test_a_reply_goes_on_from_what_the_assistant_began(url: str) -> None:
    begun = {"role": "assistant", "content": f"{THOUGHT}<answer>"}
    whole = ask(url, messages=[{"role": "user", "content": QUESTION}, begun])
    assert whole["choices"][0]["message"]["content"] == "1</answer>"


@pytest.mark.parametrize("budget", [0, 5])
def test_a_thought_that_the_assistant_began_is_closed_and_answered_from(
    url: str, budget: int
) -> None:
    before = THOUGHT[:22]
    messages = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": before}]
    free = ask(url, messages=messages)
    text, taken, _, thoughts = read(ask(url, messages=messages, thinking_token_budget=budget))
    thought, closed, answer = text.partition("<answer>")
    assert (THOUGHT.startswith(before + thought), bool(thought)) == (True, bool(budget))
    assert closed
    assert answer.endswith("</answer>")
    assert (taken, thoughts) == (free["usage"]["prompt_tokens"], budget)


def test_a_thought_that_the_assistant_closed_is_not_begun_anew(url: str) -> None:
    begun = {"role": "assistant", "content": f"{THOUGHT}<answer>"}
    messages = [{"role": "user", "content": QUESTION}, begun]
    whole = ask(url, messages=messages, thinking_token_budget=5)
    assert whole["choices"][0]["message"]["content"] == "1</answer>"


@pytest.mark.parametrize(
    "more", [{"reasoning_effort": "low"}, {"thinking_token_budget": "9" * 5_000}]
)
def test_efforts_that_are_no_budgets_are_refused(url: str, more: dict[str, Any]) -> None:
    with pytest.raises(HTTPError) as refused:
        ask(url, **more)
    assert refused.value.code == 400
    assert b"give 'thinking_token_budget'" in refused.value.read()


def test_a_budget_beyond_the_limit_binds_nothing(url: str) -> None:
    assert read(ask(url, thinking_token_budget=10**18 - 1)) == read(ask(url))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_that_no_generator_takes_is_refused(url: str, seed: int) -> None:
    with pytest.raises(HTTPError) as refused:
        ask(url, seed=seed, temperature=1)
    assert refused.value.code == 400
    assert b"seed" in refused.value.read()
