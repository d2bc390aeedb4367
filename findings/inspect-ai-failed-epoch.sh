#!/usr/bin/env bash
# Found with: inspect-ai 0.3.285, Python 3.11.
#
# One would guess: with fail_on_error=False a call that failed in one of several epochs is treated alike by every reducer:
# left out, or counted as a wrong answer. Of "majority" the library's own words say that a member of the panel without a value
# withholds its vote and does not lower the bar.
#
# Seen: one question is answered rightly in 3 of 3 epochs, another fails twice and is then answered rightly. Its two failures
#   vanish                   under mean, mode and max: it counts as wholly right;
#   lower the bar            under majority: 1 vote of 1 is a majority, since what failed has no score at all (not nan);
#   are two wrong answers    under at_least_2: it counts as wrong;
#   remove the question      under pass_at_2 and pass_k_2: it is unscored, its right answer too.
# The accuracy is 1.0, 1.0, 0.5 and 1.0 (of one question); the status is "success" each time.
#
# Why it matters: from the accuracies of two such logs nobody can tell a model that errs from a provider that was down, and
# a choice between models changes with the reducer. Who needs a reliability counts completed_samples against total_samples
# and reads the samples, not the reductions.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check inspect-ai==0.3.285
cd "$folder"
export XDG_DATA_HOME="$folder" XDG_CACHE_HOME="$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import math
from collections import Counter

from inspect_ai import Epochs, Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate


def scored(reducer: str) -> tuple[float, dict[str, object], str, int, int]:
    asked: Counter[str] = Counter()

    def reply(messages: list, *_: object) -> ModelOutput:
        question = messages[-1].text
        asked[question] += 1
        if question == "2 + 2, by a provider that is down" and asked[question] <= 2:
            raise RuntimeError("503")
        output = ModelOutput.from_content("mockllm/model", "4")
        output.usage = ModelUsage(input_tokens=10, output_tokens=1, total_tokens=11)  # else a tokenizer is downloaded
        return output

    questions = ("1 + 3", "2 + 2, by a provider that is down")
    log = eval(
        Task([Sample(id=q, input=q, target="4") for q in questions], solver=generate(), scorer=match()),
        model=get_model("mockllm/model", custom_outputs=reply, memoize=False),
        epochs=Epochs(3, reducer),
        fail_on_error=False,
        display="none",
        log_level="critical",
        log_dir="logs",
    )[0]
    values = {one.sample_id: one.value for one in log.reductions[0].samples}
    accuracy = log.results.scores[0].metrics["accuracy"].value
    return accuracy, values[questions[1]], log.status, log.results.completed_samples, log.results.total_samples


found = {name: scored(name) for name in ("mean", "mode", "max", "majority", "at_least_2", "pass_at_2", "pass_k_2")}
for name, (accuracy, value, status, completed, total) in found.items():
    print(f"{name}: accuracy {accuracy}, the question that failed twice {value}, {status}, {completed} of {total} completed")
assert all(one[2:] == ("success", 4, 6) for one in found.values()), "the log says otherwise now"
assert [found[name][:2] for name in ("mean", "mode", "max", "majority")] == [(1.0, 1.0)] + 3 * [(1.0, "C")], "not left out now"
assert found["at_least_2"][:2] == (0.5, 0), "not wrong now"
assert all(found[name][0] == 1 and math.isnan(found[name][1]) for name in ("pass_at_2", "pass_k_2")), "scored now"
PYTHON
