"""What the Tab key offers after an option; each function is given what was typed so far."""

from collections.abc import Callable


def methods(typed: str) -> list[str]:
    """Offer the names of methods."""
    from farthing import plugins

    return begun(plugins.names("methods"), typed)


def several_methods(typed: str) -> list[str]:
    """Offer names of methods after the last comma."""
    before, comma, last = typed.rpartition(",")
    return [f"{before}{comma}{name}" for name in methods(last)]


def names_in(group: str) -> Callable[[str], list[str]]:
    """Return what offers the names that are registered in a group, such as `bandits`."""

    def offer(typed: str) -> list[str]:
        from farthing import plugins

        return begun(plugins.names(group), typed)

    return offer


def formats(typed: str) -> list[str]:
    """Offer the formats of other tools' files."""
    from farthing.traces.importers.read import names

    return begun(names(), typed)


def tasks(typed: str) -> list[str]:
    """Offer the names of tasks."""
    from farthing import plugins

    return begun(plugins.names("tasks"), typed)


def begun(names: list[str], typed: str) -> list[str]:
    """Return the names that begin with what was typed."""
    return [name for name in names if name.startswith(typed)]
