"""A policy from a log is asked with the log's system prompt, and with no other."""

import asyncio
from decimal import Decimal
from pathlib import Path

import pytest

import farthing as ft
from farthing.api import Policy
from farthing.errors import InputError
from farthing.models.base import Prompt
from farthing.models.prices import Rates, TokenPrice
from farthing.models.scripted import ScriptedModel

SYSTEM = (
    "You route support tickets. Answer with one word, the team that a ticket is for: billing, "
    "shipping, returns, accounts or technical."
)
FREE = TokenPrice((Rates(Decimal(0), Decimal(0)),), request=Decimal("0.00001"))


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    log = ft.sample_log(tmp_path / "all.jsonl")
    few = tmp_path / "tickets.jsonl"
    few.write_text("".join(log.read_text().splitlines(keepends=True)[:300]))
    return ft.fit("always-small", ft.read_traces(few), grade="same as large")


def models(sent: list[Prompt]) -> dict[str, ScriptedModel]:
    def reply(prompt: Prompt) -> str:
        sent.append(prompt)
        return "billing"

    names = ("small", "medium", "large")
    return {name: ScriptedModel(reply, name=name, price=FREE) for name in names}


@pytest.mark.filterwarnings("ignore")
def test_requests_are_as_the_log_has_them(policy: Policy) -> None:
    sent: list[Prompt] = []
    answer = asyncio.run(policy.answer("Where is it?", models(sent), system=SYSTEM))
    assert (answer.best, answer.provenance) == ("billing", "same")
    (prompt,) = sent
    assert [(m.role, m.content) for m in prompt.messages] == [
        ("system", SYSTEM),
        ("user", "Where is it?"),
    ]
    assert (prompt.max_tokens, prompt.temperature) == (8, 0.0)


@pytest.mark.filterwarnings("ignore")
def test_another_system_prompt_is_refused_before_anybody_is_asked(policy: Policy) -> None:
    sent: list[Prompt] = []
    with pytest.raises(InputError, match="give the one of the log, or leave it out"):
        asyncio.run(policy.answer("Where is it?", models(sent), system="Be brief."))
    assert sent == []
    for system in (None, 3):
        with pytest.raises(InputError, match=f"system is {system}; give the text of the log's"):
            asyncio.run(policy.answer("Where?", models(sent), system=system))  # type: ignore[arg-type]
    assert asyncio.run(policy.answer("Where is it?", models(sent))).provenance == "changed"


def test_base_and_guide_have_prompts_of_their_own() -> None:
    policy = ft.fit("fixed-1", ft.generate("mmlu-llama2-7b", 60))
    sent: list[Prompt] = []
    both = {role: models(sent)["small"] for role in ("base", "guide")}
    with pytest.raises(InputError, match="system: base and guide have prompts of their own"):
        asyncio.run(policy.answer("2 + 2?", both, system=SYSTEM))
    assert sent == []
