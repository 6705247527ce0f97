import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from bltm.core.errors import InputError
from bltm.engine.devices import all_sum, make_fabric, split_device

from . import worker


def test_a_process_alone_gets_one_cpu() -> None:
    fabric = make_fabric("cpu")
    assert fabric.device == torch.device("cpu")
    assert (fabric.world_size, fabric.global_rank, fabric.is_global_zero) == (1, 0, True)
    assert all_sum(fabric, torch.tensor([1.0, 2.0])).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("name", ["gpu", "", "cpu:x", "cuda:-1", "cuda:"])
def test_unknown_devices_are_refused(name: str) -> None:
    with pytest.raises(InputError) as error:
        split_device(name)
    assert error.value.argument == "device"


@pytest.mark.parametrize("name", ["cuda", "mps"])
def test_a_device_that_is_not_there_is_refused(name: str) -> None:
    here = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if here[name]:
        pytest.skip(f"{name} is available")
    with pytest.raises(InputError, match="not available here. Use device='cpu'"):
        split_device(name)


@pytest.mark.parametrize("name", ["foo", "64-true", "bf16-true"])
def test_a_precision_that_is_unknown_or_cannot_be_trained_in_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"precision: unknown: '{name}'. Use one of 32-true"):
        make_fabric("cpu", name)


def test_auto_finds_a_device_and_cpu_numbers_do_not_matter() -> None:
    assert split_device("auto")[0] in ("cpu", "cuda", "mps")
    assert split_device("cpu") == split_device("cpu:0") == ("cpu", 1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bltm.core.errors.CoverageWarning")
def test_two_processes_find_what_one_finds(tmp_path: Path) -> None:
    """An estimator joins the group that its caller set up; no network here has BatchNorm."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, worker.__file__, str(rank), "2", str(tmp_path)],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    try:
        errors = [process.communicate(timeout=120)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], errors
    alone = worker.results(*worker.fitted())
    expected = [[-np.log(0.2), -np.log(0.9), -np.log(0.4)], [3.0, 1.0, 2.0]]
    np.testing.assert_allclose(alone["held_out"], expected, rtol=1e-6)
    together = [dict(np.load(tmp_path / f"{rank}.npz")) for rank in range(2)]
    for found in together:
        assert found.keys() == alone.keys()
        for name, value in alone.items():
            np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)
    for name, value in together[0].items():
        np.testing.assert_array_equal(together[1][name], value, err_msg=name)
    # Without a seed they agree on one.
    one, other = (dict(np.load(tmp_path / f"unseeded-{rank}.npz")) for rank in range(2))
    for name, value in one.items():
        np.testing.assert_array_equal(other[name], value, err_msg=name)
