import os
import subprocess
import sys

import pytest

from bltm.engine.tuning import SPINS, keep_memory, sleep_soon


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BLTM_KEEP_MEMORY", "MALLOC_MMAP_THRESHOLD_"):
        monkeypatch.delenv(name, raising=False)


def test_the_allocator_says_whether_it_listened() -> None:
    assert keep_memory() in (True, False)


@pytest.mark.parametrize(
    ("name", "value"), [("BLTM_KEEP_MEMORY", "0"), ("MALLOC_MMAP_THRESHOLD_", "65536")]
)
def test_a_setting_of_the_user_leaves_the_allocator_alone(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert keep_memory() is False


def test_other_systems_are_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert keep_memory() is False


SPINNING = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
SAY = """
import sys
from bltm.engine.tuning import sleep_soon
assert "torch" not in sys.modules
print(sleep_soon())
import torch
print(sleep_soon())
"""


@pytest.mark.parametrize("name", [None, *SPINNING])
def test_threads_sleep_soon_unless_the_user_says_otherwise(name: str | None) -> None:
    kept = {key: value for key, value in os.environ.items() if key not in SPINNING}
    # libgomp prints what it was told when it is loaded.
    own = {"OMP_DISPLAY_ENV": "verbose"} | ({} if name is None else {name: "12345"})
    if name == "OMP_WAIT_POLICY":
        own[name] = "PASSIVE"
    ended = subprocess.run(
        [sys.executable, "-c", SAY], env=kept | own, capture_output=True, text=True, check=True
    )
    # Once torch is loaded it is too late.
    assert ended.stdout.split() == [str(name is None), "False"]
    if "GOMP_SPINCOUNT" in ended.stderr:
        expected = {None: SPINS, "GOMP_SPINCOUNT": 12345, "OMP_WAIT_POLICY": 0}[name]
        assert f"GOMP_SPINCOUNT = '{expected}'" in ended.stderr


def test_in_a_process_that_has_loaded_torch_nothing_is_changed() -> None:
    import torch  # noqa: F401

    before = dict(os.environ)
    assert sleep_soon() is False
    assert dict(os.environ) == before
