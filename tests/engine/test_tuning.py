import sys

import pytest

from bltm.engine.tuning import keep_memory


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
