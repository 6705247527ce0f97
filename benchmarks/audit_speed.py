"""Time and memory of an audit of ready posteriors, cleanlab's ``find_label_issues`` beside it.

Both get the same arrays in memory and write no files: labels, and posteriors of one million
examples of 10 classes, and of 100,000 examples of 1,000 classes. Each measurement is a child
process of its own, the two in turn; memory is the peak of the process (VmHWM), so imports and the
arrays themselves count on both sides.

Run with ``pip install cleanlab`` once, then ``python benchmarks/audit_speed.py``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SIZES = ((1_000_000, 10), (100_000, 1_000))
TOOLS = ("bltm", "cleanlab")


def make_arrays(n: int, n_classes: int, dtype: str, folder: Path) -> None:
    """Write posteriors that fit their labels for four examples in five."""
    rng = np.random.default_rng(0)
    right = rng.integers(0, n_classes, n)
    labels = np.where(rng.random(n) < 0.2, rng.integers(0, n_classes, n), right)
    probs = rng.standard_exponential((n, n_classes), dtype=np.float32)
    probs[np.arange(n), right] += 3.0 * n_classes * rng.random(n, dtype=np.float32)
    probs /= probs.sum(axis=1, keepdims=True)
    np.save(folder / "labels.npy", labels)
    np.save(folder / "probs.npy", probs.astype(dtype))


def peak_memory() -> float:
    """Return the peak memory of this process in MB."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1024


def measure(tool: str, folder: Path) -> None:
    """Run one tool on the arrays and print what it took."""
    labels, probs = np.load(folder / "labels.npy"), np.load(folder / "probs.npy")
    if tool == "bltm":
        from bltm.audit import audit

        start = time.perf_counter()
        found = audit(labels, probs)
        order = found.ranking()
        flagged = int((found.verdict != 0).sum())
    else:
        try:
            from cleanlab.filter import find_label_issues
        except ImportError:
            sys.exit("cleanlab is not installed; 'pip install cleanlab' brings it.")

        start = time.perf_counter()
        order = find_label_issues(labels, probs, return_indices_ranked_by="self_confidence")
        # Its answer has no suggestions; the likeliest class is what its users take for one.
        probs[order].argmax(axis=1)
        flagged = len(order)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "peak_mb": peak_memory(), "flagged": flagged}))


def compare(n: int, n_classes: int, dtype: str, repeats: int, folder: Path) -> None:
    """Print the measurements of one size."""
    make_arrays(n, n_classes, dtype, folder)
    taken: dict[str, list[dict[str, float]]] = {tool: [] for tool in TOOLS}
    for _ in range(repeats):
        for tool in TOOLS:
            command = [sys.executable, __file__, "--measure", tool, "--folder", str(folder)]
            result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            taken[tool].append(json.loads(result.stdout.splitlines()[-1]))
    for tool, rows in taken.items():
        seconds = sorted(row["seconds"] for row in rows)
        memory = max(row["peak_mb"] for row in rows)
        print(
            f"{n:>9,} x {n_classes:<5,} {dtype:8} {tool:9} median {seconds[len(seconds) // 2]:6.2f}"
            f" s  best {seconds[0]:6.2f} s  peak {memory:7.0f} MB  flagged {rows[0]['flagged']:,}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--measure", choices=TOOLS)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.folder)
        return
    for n, n_classes in SIZES:
        for dtype in ("float32", "float64"):
            with tempfile.TemporaryDirectory() as folder:
                compare(n, n_classes, dtype, options.repeats, Path(folder))


if __name__ == "__main__":
    main()
