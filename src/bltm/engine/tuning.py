"""Settings of the process that make training on CPUs faster."""

from __future__ import annotations

import ctypes
import os
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEEP = 1 << 30
# The most that older versions of glibc take (mallopt(3)); they refuse a larger threshold.
OLD_LIMIT = 1 << 25
# libgomp's own number is 300,000 where no policy is set.
SPINS = 10_000


def keep_memory() -> bool:
    """Tell glibc to keep freed memory for the next batch; return whether it listened.

    Activations of a batch are freed and allocated again at each step. By default glibc hands
    blocks above 128 kB to 32 MB back to the system each time, and the page faults of getting them
    again take a good part of the step. The memory kept is bounded by the peak that training needs
    anyway. ``BLTM_KEEP_MEMORY=0`` in the environment leaves the allocator alone, and so do
    settings of the user's own for glibc; other allocators and systems are not touched.
    """
    if not sys.platform.startswith("linux") or os.environ.get("BLTM_KEEP_MEMORY") == "0":
        return False
    if "MALLOC_MMAP_THRESHOLD_" in os.environ:
        return False
    if "mmap_threshold" in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    mapped = any(mallopt(M_MMAP_THRESHOLD, limit) for limit in (KEEP, OLD_LIMIT))
    return mapped and bool(mallopt(M_TRIM_THRESHOLD, KEEP))


def sleep_soon() -> bool:
    """Let torch's threads spin briefly, then sleep, while they wait; return whether it was said.

    A thread of libgomp, which torch's wheels for Linux bring, spins for milliseconds before it
    sleeps. Beside other busy processes it spins away the time that the thread it waits for needs.
    The number of spins is read when torch is loaded, so this comes before. Settings of the user's
    own stay.
    """
    own = any(name in os.environ for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"))
    if own or "torch" in sys.modules:
        return False
    os.environ["GOMP_SPINCOUNT"] = str(SPINS)
    return True
