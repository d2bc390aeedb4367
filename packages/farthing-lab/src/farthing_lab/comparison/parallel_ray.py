"""The same trainings on a Ray cluster, one core each; the results are those of one process."""

from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from farthing.errors import InputError
from farthing.methods.base import Silent
from farthing.recommendation.base import Event, Watch
from farthing.traces.arrays import TraceArrays
from farthing_lab.comparison.collect_on_ray import cluster, result_of
from farthing_lab.comparison.parallel import OnResult, Result, Task, drop


def get_ready_on_ray(modules: Sequence[str], workers: int) -> None:
    """Join or start the cluster, and let workers begin to load modules.

    They do so beside whatever this process does meanwhile: loading PyTorch takes longer than some
    trainings.
    """
    ray = cluster("training on Ray")
    load = ray.remote(num_cpus=1)(_load)
    for _ in range(workers):
        load.remote(list(modules))


def _load(modules: Sequence[str]) -> None:
    for module in modules:
        with suppress(ImportError):  # whoever needs it will say so
            import_module(module)


def on_ray(
    jobs: Sequence[Task[Result]],
    train: TraceArrays,
    workers: int,
    watch: Watch,
    keep: OnResult[Result] = drop,
) -> list[Result | None]:
    """Run every job; see `parallel.train_all`. A training is reported when it is done.

    Joins the cluster that `RAY_ADDRESS` names, else starts one here.

    Args:
        jobs: what to train.
        train: the questions to train on.
        workers: how many trainings run at a time.
        watch: is told which training is done.
        keep: is handed each result as it comes.
    """
    ray = cluster("training on Ray")
    shared, work = ray.put(train), ray.remote(max_retries=0, num_cpus=1)(_work)
    results: list[Result | None] = [None] * len(jobs)
    waiting, running = list(enumerate(jobs)), dict[Any, int]()
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                place, job = waiting.pop(0)
                running[work.remote(job, shared)] = place
            (done,), _ = ray.wait(list(running), num_returns=1)
            place = running.pop(done)
            result = results[place] = result_of(ray, done)
            if result is not None:
                keep(place, result)
            watch(Event("train", jobs[place].name, 1, 1))
    except KeyboardInterrupt:
        pass  # what is whole is kept
    finally:
        for one in running:
            ray.cancel(one, force=True)
    return results


def _work(job: Task[Any], train: TraceArrays) -> Any:
    try:
        return job.run(train, Silent())
    except InputError as problem:  # its subclasses take more than a text, and cannot be sent
        raise InputError(str(problem)) from None
