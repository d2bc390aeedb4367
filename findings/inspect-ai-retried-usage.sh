#!/usr/bin/env bash
# Found with: inspect-ai 0.3.285, Python 3.11.
#
# One would guess: a sample's model_usage holds the tokens that the sample took, so that those of all samples add up to the
# log's stats.model_usage.
#
# Seen: with retry_on_error, a sample that needed three tries (a tool broke after the model had answered) says 110 tokens,
# and the log's stats say 330. total_time is the last try's too. What the failed tries took stands only in the model events
# under error_retries of the sample, and there is no field with their sum.
#
# Why it matters: prices per question are taken from the samples, since the stats know no questions. There failed tries are
# free, and the model that fails most looks cheaper than it is: here by a factor of three.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check inspect-ai==0.3.285
cd "$folder"
export XDG_DATA_HOME="$folder" XDG_CACHE_HOME="$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import asyncio

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import solver

TRIES, WAIT_S = 3, 0.5


def reply(*_: object) -> ModelOutput:
    output = ModelOutput.from_content("mockllm/model", "4")
    output.usage = ModelUsage(input_tokens=100, output_tokens=10, total_tokens=110)
    return output


@solver
def with_a_tool():
    tried = 0

    async def solve(state, generate):
        nonlocal tried
        tried += 1
        state = await generate(state)
        await asyncio.sleep(WAIT_S)
        if tried < TRIES:
            raise RuntimeError("the tool broke")
        return state

    return solve


log = eval(
    Task([Sample(input="2 + 2", target="4")], solver=with_a_tool(), scorer=match()),
    model=get_model("mockllm/model", custom_outputs=reply, memoize=False),
    retry_on_error=TRIES,
    display="none",
    log_level="critical",
    log_dir="logs",
)[0]
sample = log.samples[0]
whole = log.stats.model_usage["mockllm/model"].total_tokens
said = sample.model_usage["mockllm/model"].total_tokens
failed = [event for one in sample.error_retries for event in one.events if event.event == "model"]
hidden = sum(event.output.usage.total_tokens for event in failed)
print(f"the log: {whole} tokens; its only sample: {said}; in the events of its failed tries: {hidden}")
print(f"the sample's total_time: {'one try' if sample.total_time < 2 * WAIT_S else 'more than one try'}")
assert (whole, said, hidden) == (330, 110, 220), "the tokens are counted otherwise now"
assert sample.total_time < 2 * WAIT_S, "the time holds failed tries now"
PYTHON
