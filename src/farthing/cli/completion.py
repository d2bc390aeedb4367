"""What the Tab key offers after an option; each function is given what was typed so far."""


def methods(typed: str) -> list[str]:
    """Offer the names of methods."""
    from farthing import plugins

    return _begun(plugins.names("methods"), typed)


def several_methods(typed: str) -> list[str]:
    """Offer names of methods after the last comma."""
    before, comma, last = typed.rpartition(",")
    return [f"{before}{comma}{name}" for name in methods(last)]


def allocators(typed: str) -> list[str]:
    """Offer the names of allocators."""
    from farthing import plugins

    return _begun(plugins.names("allocators"), typed)


def bandits(typed: str) -> list[str]:
    """Offer the names of bandits."""
    from farthing import plugins

    return _begun(plugins.names("bandits"), typed)


def planners(typed: str) -> list[str]:
    """Offer the names of planners."""
    from farthing import plugins

    return _begun(plugins.names("planners"), typed)


def presets(typed: str) -> list[str]:
    """Offer the names of presets."""
    from farthing.process.generator.presets import PRESETS

    return _begun(sorted(PRESETS), typed)


def formats(typed: str) -> list[str]:
    """Offer the formats of other tools' files."""
    from farthing.traces.importers.read import names

    return _begun(names(), typed)


def tasks(typed: str) -> list[str]:
    """Offer the names of tasks."""
    from farthing import plugins

    return _begun(plugins.names("tasks"), typed)


def embedded(typed: str) -> list[str]:
    """Offer the names of embedded models."""
    from farthing.models.embedded import known

    return _begun(sorted(model.name for model in known()), typed)


def _begun(names: list[str], typed: str) -> list[str]:
    return [name for name in names if name.startswith(typed)]
