"""Where and with what a run was made."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

from bltm import __version__

PACKAGES = ("torch", "lightning-fabric", "numpy", "scikit-learn", "scipy")


def describe_machine() -> dict[str, Any]:
    """Return versions, hardware and threads, as plain values."""
    import torch

    return {
        "bltm": __version__,
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "cpu": cpu_name(),
        "cpus": os.cpu_count(),
        "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
        "threads": torch.get_num_threads(),
        "load_average": [round(value, 2) for value in os.getloadavg()],
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def cpu_name() -> str:
    """Return the processor's name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def forget_peak_memory() -> None:
    """Let the peak of this process's memory start anew, where the system can."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return
