"""Time and memory of an audit of ready posteriors, cleanlab's ``find_label_issues`` beside it.

Both get the same arrays in memory and write no files: labels, and posteriors of one million
examples of 10 classes, and of 100,000 examples of 1,000 classes. Each measurement is a child
process of its own, the two in turn. Memory is the peak of that process (VmHWM) with imports and the
arrays themselves; processes that cleanlab starts are not counted against it. Time is that of the
call: imports count where they happen inside of it. For cleanlab it includes taking the likeliest
class of what it found, for its answer has no suggestions::

    pip install cleanlab
    python benchmarks/audit_speed.py
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from harness import median, parser, report, run_child

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
        found.ranking()
        flagged = int((found.verdict != 0).sum())
    else:
        try:
            from cleanlab.filter import find_label_issues
        except ImportError:
            sys.exit("cleanlab is not installed; 'pip install cleanlab' brings it.")

        start = time.perf_counter()
        order = find_label_issues(labels, probs, return_indices_ranked_by="self_confidence")
        probs[order].argmax(axis=1)
        flagged = len(order)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "peak": peak_memory(), "flagged": flagged}))


def compare(n: int, n_classes: int, dtype: str, repeats: int) -> list[dict[str, Any]]:
    """Return a row for each tool."""
    taken: dict[str, list[dict[str, Any]]] = {tool: [] for tool in TOOLS}
    with tempfile.TemporaryDirectory() as folder:
        make_arrays(n, n_classes, dtype, Path(folder))
        for _ in range(repeats):
            for tool in TOOLS:
                child = run_child([__file__, "--measure", tool, "--folder", folder])
                taken[tool].append(child.result)
    return [
        {
            "examples": f"{n:,}",
            "classes": n_classes,
            "type": dtype,
            "tool": tool,
            "seconds": median([row["seconds"] for row in rows]),
            "best": min(row["seconds"] for row in rows),
            "peak MB": round(max(row["peak"] for row in rows)),
            "flagged": rows[0]["flagged"],
        }
        for tool, rows in taken.items()
    ]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--measure", choices=TOOLS, help="used by the script itself")
    options.add_argument("--folder", type=Path, help="used by the script itself")
    given = options.parse_args()
    if given.measure:
        measure(given.measure, given.folder)
        return
    rows = [
        row
        for n, n_classes in SIZES
        for dtype in ("float32", "float64")
        for row in compare(n, n_classes, dtype, given.repeats)
    ]
    report("An audit of posteriors in memory, no files written", rows, given.json)


if __name__ == "__main__":
    main()
