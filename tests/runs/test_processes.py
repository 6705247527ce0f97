"""Which process is the first, and what signals do."""

import os
import signal

import pytest

from bltm.runs.processes import StopSignal, is_first_process


@pytest.mark.parametrize(
    ("environment", "first"),
    [
        ({}, True),
        ({"LOCAL_RANK": "1"}, False),
        ({"LOCAL_RANK": "0", "NODE_RANK": "1"}, False),
        ({"LOCAL_RANK": "0", "GROUP_RANK": "0", "RANK": "0"}, True),
        ({"LOCAL_RANK": "0", "RANK": "4"}, False),
        ({"SLURM_PROCID": "2"}, False),
    ],
)
def test_first_process__by_environment(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], first: bool
) -> None:
    for name in ("RANK", "SLURM_PROCID", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert is_first_process() is first


def test_stop_signal__waits_only_while_armed_and_only_once() -> None:
    said: list[str] = []
    before = signal.getsignal(signal.SIGINT)
    with StopSignal(said.append) as stop:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        stop.arm()
        assert not stop()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop()
        assert len(said) == 1
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_stop_signal__ignored_by_the_caller__stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with StopSignal(lambda message: None) as stop:
            os.kill(os.getpid(), signal.SIGINT)
            assert not stop()
    finally:
        signal.signal(signal.SIGINT, before)
