"""Runs an engine in a process of its own and prints each event as a line of JSON.

Takes the engine ("local" or "ray"), the folder of the working files, and the groups as JSON.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bltm.benchmark.engines import Engine, Finished, LocalEngine, RayEngine
from bltm.benchmark.spec import RunSpec
from bltm.core.errors import InputError


def tell(engine: Engine, groups: list[list[RunSpec]], work: Path) -> None:
    for event in engine.run(groups, work):
        row = event.row if isinstance(event, Finished) else None
        print(json.dumps({"id": event.spec.id, "worker": event.worker, "row": row}), flush=True)


def check_gpus(groups: list[list[RunSpec]], work: Path) -> None:
    """Look at which GPU the workers got, on a Ray that takes itself to have one."""
    import ray

    def gpu_ids(_: Any, workers: Sequence[Any], *__: Any) -> Iterator[list[int]]:
        for worker in workers:
            yield ray.get(worker._actor.__ray_call__.remote(lambda _: ray.get_gpu_ids()))

    def found(gpus: float) -> list[Any]:
        return list(RayEngine("local", threads=1, gpus=gpus).run(groups[:1] * 3, work))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bltm.benchmark.engines.ray.dispatch", gpu_ids)
        assert found(1.0) == [[0]]
        assert found(0.5) == [[0], [0]]


def tell_on_ray(groups: list[list[RunSpec]], work: Path) -> None:
    """Use one Ray for several things, since it takes seconds to start."""
    import ray

    from bltm.benchmark.engines.ray import _connected, _Worker

    ray.init = partial(ray.init, num_cpus=2, num_gpus=1)
    with _connected("local"):
        worker = _Worker(1, 0.0, work / "missing" / "mark")
        with pytest.raises(InputError, match="does not see the folder"):
            worker.welcome()
        worker.stop()
        check_gpus(groups, work)
        tell(RayEngine("local", threads=1), groups, work)
        assert ray.is_initialized()
    assert not ray.is_initialized()


def main(name: str, work: str, text: str) -> None:
    groups = [[RunSpec.from_json(spec) for spec in group] for group in json.loads(text)]
    if name == "ray":
        tell_on_ray(groups, Path(work))
    else:
        tell(LocalEngine(jobs=2, threads=1), groups, Path(work))


if __name__ == "__main__":
    main(*sys.argv[1:])
