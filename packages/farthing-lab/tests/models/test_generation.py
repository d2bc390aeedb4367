"""The loop is held to transformers' own `generate`, and to a pass over the whole text."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from scipy.stats import chisquare
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    Lfm2Config,
    Lfm2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
)

from farthing.errors import InputError
from farthing_lab.models.generation import Context, as_they_end, generate, without
from farthing_lab.models.generation_rows import Generated, GenerationRow

VOCABULARY = 30
PROMPTS = ([5, 6, 7], [8], [9, 10, 11, 12, 13, 14, 15], [3, 3])


def llama() -> Any:
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.3,
        bos_token_id=None,
        eos_token_id=None,
    )
    return LlamaForCausalLM(config)


def gpt2() -> Any:
    """Positions are learned here: a shift by the padding would show."""
    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=32,
        n_layer=2,
        n_head=4,
        initializer_range=0.3,
        bos_token_id=None,
        eos_token_id=None,
    )
    return GPT2LMHeadModel(config)


def lfm2() -> Any:
    """Convolutions remember what they saw last: padding, and rows that end, would show."""
    config = Lfm2Config(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        block_auto_adjust_ff_dim=False,
        layer_types=["conv", "full_attention"],
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.3,
        bos_token_id=None,
        eos_token_id=None,
    )
    return Lfm2ForCausalLM(config)


@pytest.fixture(params=[llama, gpt2, lfm2], ids=["llama", "gpt2", "lfm2"])
def network(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(0)
    return request.param().eval()


def theirs(network: Any, prompt: Sequence[int], **wanted: Any) -> list[int]:
    ids = torch.tensor([prompt])
    whole = network.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, pad_token_id=0, **wanted
    )
    taken: list[int] = whole[0, len(prompt) :].tolist()
    return taken


def same(one: Generated, other: Generated) -> None:
    assert (one.ids, one.reason) == (other.ids, other.reason)
    assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
    assert [[token for token, _ in top] for top in one.top] == [
        [token for token, _ in top] for top in other.top
    ]


def test_greedy_is_what_the_library_generates(network: Any) -> None:
    lengths = [12, 3, 20, 7]
    rows = [GenerationRow(ids, n) for ids, n in zip(PROMPTS, lengths, strict=True)]
    done = generate(network, rows)
    for prompt, n, mine in zip(PROMPTS, lengths, done, strict=True):
        assert list(mine.ids) == theirs(network, prompt, max_new_tokens=n)
        assert mine.reason == "length"


def test_a_row_ends_at_its_own_end_token(network: Any) -> None:
    free = generate(network, [GenerationRow(ids, 20) for ids in PROMPTS])
    end = free[2].ids[4]
    rows = [
        GenerationRow(ids, 20, ends=frozenset({end} if i == 2 else {}))
        for i, ids in enumerate(PROMPTS)
    ]
    done = generate(network, rows)
    cut = free[2].ids.index(end) + 1
    assert (done[2].ids, done[2].reason) == (free[2].ids[:cut], "end")
    assert list(done[2].ids) == theirs(network, PROMPTS[2], max_new_tokens=20, eos_token_id=end)
    for i in (0, 1, 3):
        same(done[i], free[i])


@pytest.mark.slow
def test_a_row_is_the_same_alone_and_in_any_company(network: Any) -> None:
    rows = [
        GenerationRow(PROMPTS[0], 15, temperature=1.0, seed=1, top_logprobs=2),
        GenerationRow(PROMPTS[1], 4, temperature=0.7, top_p=0.8, seed=2),
        GenerationRow(PROMPTS[2], 20, seed=3, top_logprobs=5),
        GenerationRow(PROMPTS[2], 20, temperature=2.0, seed=1, top_logprobs=1),
    ]
    alone = [generate(network, [row])[0] for row in rows]
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 2, 0]):
        together = generate(network, [rows[i] for i in order])
        for i, done in zip(order, together, strict=True):
            same(done, alone[i])
    assert alone[0].ids != alone[3].ids[:15]


def test_log_probabilities_are_the_networks_own(network: Any) -> None:
    """Neither temperature nor top_p changes what the network itself said."""
    rows = [
        GenerationRow(PROMPTS[0], 9, temperature=3.0, top_p=0.9, seed=0, top_logprobs=4),
        GenerationRow(PROMPTS[2], 5, top_logprobs=VOCABULARY + 5),
    ]
    done = generate(network, rows)
    for row, one in zip(rows, done, strict=True):
        with torch.no_grad():
            whole = network(torch.tensor([[*row.ids, *one.ids]])).logits[0].double()
        said = whole.log_softmax(1)[len(row.ids) - 1 : -1]
        for place, token in enumerate(one.ids):
            assert one.logprobs[place] == pytest.approx(float(said[place, token]), abs=1e-4)
            best = said[place].topk(min(row.top_logprobs, VOCABULARY))
            assert [t for t, _ in one.top[place]] == best.indices.tolist()
            assert [v for _, v in one.top[place]] == pytest.approx(best.values.tolist(), abs=1e-4)


def test_log_probabilities_are_of_what_hooks_left(network: Any) -> None:
    row = GenerationRow(PROMPTS[0], 6, temperature=3.0, seed=0)
    [done] = generate(network, [row], [without(3), lambda logits, _: logits * 0.5])
    with torch.no_grad():
        whole = network(torch.tensor([[*row.ids, *done.ids]])).logits[0].double()
    whole[:, 3] = -torch.inf
    said = (whole * 0.5).log_softmax(1)[len(row.ids) - 1 : -1]
    expected = said[range(6), list(done.ids)].tolist()
    assert done.logprobs == pytest.approx(expected, abs=1e-4)
    assert 3 not in done.ids


@pytest.mark.slow
@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (2.0, 1.0), (1.0, 0.6)])
def test_draws_follow_the_distribution(temperature: float, top_p: float) -> None:
    torch.manual_seed(0)
    network = llama().eval()
    n = 4_000
    rows = [
        GenerationRow(PROMPTS[0], 1, temperature=temperature, top_p=top_p, seed=seed)
        for seed in range(n)
    ]
    counts = [0] * VOCABULARY
    for done in generate(network, rows):
        counts[done.ids[0]] += 1
    with torch.no_grad():
        logits = network(torch.tensor([PROMPTS[0]])).logits[0, -1].double()
    p = (logits / temperature).softmax(0)
    likely = p.sort(descending=True).values
    least = likely[int((likely.cumsum(0) < top_p).sum().clamp(max=VOCABULARY - 1))]
    kept = torch.where(p >= least, p, torch.zeros_like(p))
    expected = (kept / kept.sum() * n).tolist()
    assert all(count == 0 for count, e in zip(counts, expected, strict=True) if e == 0)
    both = [(c, e) for c, e in zip(counts, expected, strict=True) if e >= 5]
    rest = (n - sum(c for c, _ in both), n - sum(e for _, e in both))
    both += [rest] if rest[1] > 1e-6 else []
    assert chisquare([c for c, _ in both], [e for _, e in both]).pvalue > 1e-3


def test_without_a_seed_torchs_own_generator_decides() -> None:
    torch.manual_seed(0)
    network = llama().eval()
    row = GenerationRow(PROMPTS[0], 12, temperature=1.0)
    found = []
    for seed in (4, 4, 5):
        torch.manual_seed(seed)
        found.append(generate(network, [row, row]))
    assert found[0] == found[1] != found[2]
    assert found[0][0].ids != found[0][1].ids


def test_a_stop_condition_sees_what_was_taken_and_ends_its_row() -> None:
    torch.manual_seed(0)
    network = llama().eval()
    seen: list[list[int]] = []

    def stop(taken: Sequence[int]) -> bool:
        seen.append(list(taken))
        return len(taken) == 3

    free, stopped = generate(
        network, [GenerationRow(PROMPTS[1], 6), GenerationRow(PROMPTS[1], 6, stop=stop)]
    )
    assert (stopped.ids, stopped.reason) == (free.ids[:3], "stop")
    assert seen == [list(free.ids[:n]) for n in (1, 2, 3)]


def test_hooks_come_one_after_another_and_see_the_rows_under_way() -> None:
    torch.manual_seed(0)
    network = llama().eval()
    seen: list[list[list[int]]] = []

    def watch(logits: torch.Tensor, contexts: Sequence[Context]) -> torch.Tensor:
        assert logits.shape == (len(contexts), VOCABULARY)
        seen.append([list(one.ids) for one in contexts])
        assert all(list(one.ids[: one.begun]) in ([1], [2, 2]) for one in contexts)
        return torch.zeros_like(logits)

    def length(logits: torch.Tensor, contexts: Sequence[Context]) -> torch.Tensor:
        for place, one in enumerate(contexts):
            logits[place, len(one.ids)] = 1.0
        return logits

    rows = [GenerationRow([1], 2), GenerationRow([2, 2], 4, temperature=1e-3, seed=0)]
    done = generate(network, rows, [watch, length])
    assert [one.ids for one in done] == [(1, 2), (2, 3, 4, 5)]
    assert seen[1] == [[1, 1], [2, 2, 2]]
    assert seen[2:] == [[[2, 2, 2, 3]], [[2, 2, 2, 3, 4]]]


def test_rows_are_handed_over_as_they_end_with_the_gradient_as_it_was() -> None:
    torch.manual_seed(0)
    network = llama().eval()
    ended = []

    def watch(logits: torch.Tensor, _: Sequence[Context]) -> torch.Tensor:
        assert not logits.requires_grad
        return logits

    for number, done in as_they_end(
        network, [GenerationRow([1], 5), GenerationRow([2], 2), GenerationRow([3], 9)], [watch]
    ):
        assert torch.is_grad_enabled()
        ended.append((number, len(done.ids)))
    assert ended == [(1, 2), (0, 5), (2, 9)]
    loss = network(torch.tensor([[1, 2]])).logits.sum()
    loss.backward()  # nothing that the loop did is in the way of training


def test_nothing_left_to_take_is_said() -> None:
    network = llama().eval()
    with pytest.raises(InputError, match="a hook forbids all"):
        generate(network, [GenerationRow([1], 2)], [lambda logits, _: logits - torch.inf])
    with pytest.raises(InputError, match="at least one token"):
        GenerationRow([], 2)
    assert generate(network, []) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")  # between the two libraries
def test_a_network_in_an_adapter_makes_the_logits_of_the_last_place_alone() -> None:
    import peft  # noqa: PLC0415 - slow to load

    torch.manual_seed(0)
    network = llama()
    wrapped = peft.get_peft_model(
        network, peft.LoraConfig(init_lora_weights=False, target_modules="all-linear")
    ).eval()
    shapes = []
    network.lm_head.register_forward_hook(lambda _, __, out: shapes.append(tuple(out.shape)))
    [done] = generate(wrapped, [GenerationRow(PROMPTS[2], 3)])
    assert shapes == [(1, 1, VOCABULARY)] * 3
    assert list(done.ids) == theirs(wrapped, PROMPTS[2], max_new_tokens=3)
