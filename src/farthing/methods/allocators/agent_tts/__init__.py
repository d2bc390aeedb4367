"""AgentTTS: who does each part of a task, and how many samples it takes, by trial."""

from farthing.methods.base import SystemCard

AGENT_TTS = SystemCard(
    name="agent-tts",
    label="AgentTTS",
    meaning="Tries who does which part of a task with how many samples, and learns from each trial",
    kind="allocator",
    make="farthing.methods.allocators.agent_tts.allocator:AGENT_TTS",
    paper="2508.00890",
    page="docs/parts.md",
    place=50,
)
