"""Runs an engine in a process of its own and prints each event as a line of JSON.

Takes the engine ("local" or "ray"), the folder of the working files, and the groups as JSON.
"""

import json
import sys
from pathlib import Path

import pytest

from bltm.benchmark.engines import Engine, Finished, LocalEngine, RayEngine
from bltm.benchmark.spec import RunSpec
from bltm.core.errors import InputError


def tell(engine: Engine, groups: list[list[RunSpec]], work: Path) -> None:
    for event in engine.run(groups, work):
        row = event.row if isinstance(event, Finished) else None
        print(json.dumps({"id": event.spec.id, "worker": event.worker, "row": row}), flush=True)


def tell_on_ray(groups: list[list[RunSpec]], work: Path) -> None:
    """Use one Ray for several things, since it takes seconds to start."""
    import ray

    from bltm.benchmark.engines.ray import _connected, _Worker

    with _connected("local"):
        worker = _Worker(1, work / "missing" / "mark")
        with pytest.raises(InputError, match="does not see the folder"):
            worker.welcome()
        worker.stop()
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
