"""Who simulates before it acts: planners over any simulator of a decision process."""

from farthing.methods.base import SystemCard

PAGE = "docs/planners.md"
BAVT = SystemCard(
    name="bavt",
    label="BAVT",
    meaning="Tree search over steps that cost money; explores, then goes for the best",
    kind="planner",
    make="farthing.methods.planners.bavt:BAVT",
    paper="2603.12634",
    page=PAGE,
    place=10,
)
FLARE = SystemCard(
    name="flare",
    label="FLARE",
    meaning="Looks ahead to the end, commits to one action, plans again",
    kind="planner",
    make="farthing.methods.planners.flare:FLARE",
    paper="2601.22311",
    page=PAGE,
    place=20,
)
MCPP = SystemCard(
    name="mcpp",
    label="MCPP",
    meaning="Models and samples for a workflow with a budget and a deadline, event by event",
    kind="planner",
    make="farthing.methods.planners.mcpp:MCPP",
    paper="2605.06110",
    page=PAGE,
    place=30,
)
