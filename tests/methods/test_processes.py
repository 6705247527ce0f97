"""Methods whose loss is a mean over examples give with two processes what they give with one."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from . import worker


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("processes")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, worker.__file__, str(rank), "2", str(directory)],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    try:
        errors = [process.communicate(timeout=240)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], errors
    return directory


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bltm.core.errors.CoverageWarning")
@pytest.mark.xdist_group("processes")
@pytest.mark.parametrize("name", worker.DIVISIBLE)
def test_two_processes_find_what_one_finds(name: str, together: Path) -> None:
    alone = worker.fitted(name)
    for rank in range(2):
        found = dict(np.load(together / f"{name}-{rank}.npz"))
        for key, value in alone.items():
            np.testing.assert_allclose(found[key], value, atol=1e-5, err_msg=f"{name}: {key}")


def test_what_can_be_divided_is_known() -> None:
    assert {"cross-entropy", "gce", "apl", "forward", "reweight", "bltm"} <= set(worker.DIVISIBLE)
    assert not {"coteaching", "dmi", "dividemix"} & set(worker.DIVISIBLE)
