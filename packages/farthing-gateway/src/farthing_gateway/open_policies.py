"""Opens the policies of a configuration: a pool of models, the agents of a job, a controller."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from farthing import plugins
from farthing.models.base import Model
from farthing.models.config import ModelsConfig
from farthing.runtime.job import read_job, sold
from farthing.runtime.protocol import Independent
from farthing.runtime.system import system_of
from farthing.tasks.base import Task
from farthing_gateway.bundles import Decider
from farthing_gateway.charging import section_of
from farthing_gateway.chat_agent import ChatAgent
from farthing_gateway.circuit_breaker import limit_retries, with_efforts
from farthing_gateway.config import ServeConfig
from farthing_gateway.config_sections import PolicySection
from farthing_gateway.policies import GatewayPolicy
from farthing_gateway.upstream_base import ASSUMED_OUTPUT


def open_policies(
    config: ServeConfig, models: Mapping[str, Model]
) -> tuple[dict[str, GatewayPolicy], list[Any]]:
    """Return the policies of a configuration, and what is to be closed after them.

    Args:
        config: of the gateway.
        models: by section.
    """
    found, closing = {}, []
    for name, section in config.policies.items():
        opened: list[Any] = []
        if section.job is not None:
            policy, opened = _of_job(name, section, config)
        elif section.controller is not None:
            policy, opened = _of_controller(name, section, section.controller, config)
        else:
            policy = _of_pool(name, section, config, models)
        closing += opened
        policy.load()
        found[name] = policy
    return found, closing


def pool_agents(
    names: Sequence[str],
    section: PolicySection,
    config: ServeConfig,
    models: Mapping[str, Model],
) -> tuple[ChatAgent, ...]:
    """Return agents of a policy's task, each of which asks as the client did."""
    most = section.max_tokens or config.serve.default_max_output or ASSUMED_OUTPUT
    temperature = ChatAgent.temperature if section.temperature is None else section.temperature
    return tuple(
        ChatAgent(models[name], name, str.strip, section.system, most, temperature)
        for name in names
    )


def _of_pool(
    name: str, section: PolicySection, config: ServeConfig, models: Mapping[str, Model]
) -> GatewayPolicy:
    task: Task = plugins.load("tasks", section.task)
    plan = Independent(pool_agents(section.pool, section, config, models), 1, task)
    system = system_of(plan, {one: sold(config.models, one) for one in section.pool})
    most = section.max_tokens or config.serve.default_max_output or ASSUMED_OUTPUT
    tried = pool_agents((*section.pool, *section.trial), section, config, models)
    tries = max(config.models.sections[one].patience.paid_tries for one in section.pool)
    return GatewayPolicy(name, section, task, plan, system, most, tried, tries)


def _of_job(
    name: str, section: PolicySection, config: ServeConfig
) -> tuple[GatewayPolicy, list[Any]]:
    job = read_job(Path(str(section.job)))
    job = replace(job, models=_hurried(job.models, config))
    recording, closing = job.open(workers=config.serve.workers)
    most = section.max_tokens or config.serve.default_max_output or ASSUMED_OUTPUT
    protocol, task = recording.protocol, recording.task
    tried = tuple(agent for number, agent in protocol.turns() if number == 1)
    paid = max(one.patience.paid_tries for one in job.models.sections.values())
    tries = paid if protocol.independent else None
    policy = GatewayPolicy(name, section, task, protocol, job.system(), most, tried, tries)
    return policy, list(closing)


def _of_controller(
    name: str, section: PolicySection, named: str, config: ServeConfig
) -> tuple[GatewayPolicy, list[Any]]:
    decider: Decider = plugins.load("deciders", "controller").find(named)
    opened = _hurried(decider.models, config).open(workers=config.serve.workers)
    experts, loaded = decider.served(opened)
    plan = Independent(experts, 1, decider.task)
    policy = GatewayPolicy(name, section, decider.task, plan, None, decider.max_tokens, ())
    policy.loaded = loaded
    return policy, list(opened.values())


def _hurried(models: ModelsConfig, config: ServeConfig) -> ModelsConfig:
    """Return models of a job or a controller's pool that are tried as the gateway's own are.

    Fallbacks stand in for the gateway's model that one of their calls is charged to.
    """
    names = {name: one.settings.model for name, one in models.sections.items()}
    own = {name: one.settings.model for name, one in config.models.sections.items()}
    charged = {name: section_of(name, model, own) for name, model in names.items()}
    fallbacks = with_efforts(config.serve.fallbacks, own)
    return limit_retries(models, {name for name, one in charged.items() if one in fallbacks})
