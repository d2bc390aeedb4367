"""Kill a change of versions at every step it takes on the disk; say what the next command finds.

    python killed.py deploy|back FOLDER

In a process of its own, which forks: the child dies, without any clean-up, just before its k-th
step. FOLDER has what `test_versions.py` made: `bundles` and `new`.
"""

import json
import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from farthing.bundle.folder import load
from farthing.bundle.versions import Change, deploy, digest_of, put_back, read_history
from farthing.errors import BundleError

STEPS = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree"}
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def change(what: str, folder: Path) -> None:
    place = folder / "bundles" / "support"
    if what == "deploy":
        how = Change(at=NOW, how="recalibrated")
        deploy(place, load(folder / "new"), how, instead_of=digest_of(place))
    else:
        put_back(place, 1, Change(at=NOW, how="rolled back"))


def die_before(step: int) -> None:
    """End this process before it takes a step on the disk; 0 is the first."""
    taken = 0

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal taken
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT
        if event in STEPS or writes:
            if taken == step:
                os._exit(9)
            taken += 1

    sys.addaudithook(count)


def state(folder: Path) -> dict[str, Any]:
    place = folder / "bundles" / "support"
    try:
        at_once: str | None = digest_of(place)
        load(place)
    except BundleError:
        at_once = None
    history = read_history(place)
    load(place)
    left = sorted(one.name for one in (folder / "bundles").iterdir())
    kept = sorted(one.name for one in (folder / "bundles" / "support.versions").glob("*"))
    return {
        "at once": at_once,
        "after": digest_of(place),
        "present": history.present,
        "known": {str(one.number): one.digest for one in history.versions},
        "folders": {
            name: digest_of(folder / "bundles" / "support.versions" / name)
            for name in kept
            if name.isdigit()
        },
        "left": left + [name for name in kept if name.startswith(".")],
    }


def main() -> None:
    what, folder = sys.argv[1], Path(sys.argv[2])
    found = []
    for step in range(1_000):
        trial = folder.with_name(f"{folder.name}-{step}")
        shutil.copytree(folder, trial)
        child = os.fork()
        if child == 0:
            die_before(step)
            change(what, trial)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        found.append({"code": code, **state(trial)})
        if code != 9:
            break
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
