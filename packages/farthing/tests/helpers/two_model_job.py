"""Jobs of two models behind one server, and of one question, which a search of its own answers."""

import json
from pathlib import Path

from farthing.runtime.job import Job, read_job

MODELS = """
[models.small]
provider = "openai-compatible"
model = "small"
url = "URL"
[models.large]
provider = "openai-compatible"
model = "large"
url = "URL"
extra = { reasoning_effort = "low" }
[prices.small]
input_per_million = 1
output_per_million = 2
[prices.large]
input_per_million = 5
output_per_million = 10
"""


def write(folder: Path, url: str, head: str, models: str = MODELS) -> Job:
    question = {
        "id": "q0",
        "question": "Capital of Portugal?",
        "gold": "Lisbon",
        "paragraphs": [["Portugal", "Its capital is Lisbon."], ["Norway", "Oslo."]],
    }
    (folder / "questions.jsonl").write_text(json.dumps(question))
    (folder / "job.toml").write_text(head + models.replace("URL", url))
    return read_job(folder / "job.toml")
