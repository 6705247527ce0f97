"""Peak memory of a fit on 60,000 Fashion-MNIST images with the compact net.

Each row is a process of its own; the figure is its largest resident set as the system counts it.
The peak does not depend on the number of epochs, so there is one. The command line is measured on
an ``.npz`` file as ``bltm noise`` writes it.
"""

from __future__ import annotations

import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

from harness import Child, parser, report, run_child

TARGET_MB = 1500
COMMAND_LINE = "from bltm.cli import main; main()"


def only_imports() -> None:
    """Import what a fit needs."""
    import torch

    from bltm import BLTMClassifier

    BLTMClassifier(), torch.zeros(1)


def only_data(n: int) -> None:
    """Import, and read the images."""
    from harness import noisy_fashion

    only_imports()
    noisy_fashion(n)


def fit(n: int, preset: str, epochs: int) -> None:
    """Fit through the Python interface."""
    from bltm import BLTMClassifier
    from harness import noisy_fashion

    model = BLTMClassifier("compact", preset=preset, epochs=epochs, random_state=0)
    model.fit(noisy_fashion(n))


def write_npz(n: int, path: str) -> None:
    """Write the noisy images to a file for the command line."""
    import numpy as np

    from harness import noisy_fashion

    source = noisy_fashion(n)
    np.savez(path, X=source.inputs, y=source.labels)


def command_line(options: Namespace, directory: str) -> Child:
    """Fit with ``bltm fit``."""
    path = str(Path(directory) / "noisy.npz")
    run_child([__file__, "--child", "npz", "--path", path, "--images", str(options.images)])
    arguments = ["fit", path, "--out", str(Path(directory) / "run"), "--quiet"]
    more = ["--net", "compact", "--epochs", str(options.epochs)]
    return run_child(["-c", COMMAND_LINE, *arguments, *more], last_line_is_json=False)


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--images", type=int, default=60_000)
    arguments.add_argument("--epochs", type=int, default=1)
    arguments.add_argument("--rows", nargs="+", default=["imports", "data", "fit", "cli"])
    arguments.add_argument("--preset", default="default")
    arguments.add_argument("--child", choices=["imports", "data", "fit", "npz"])
    arguments.add_argument("--path", help="for --child npz")
    options = arguments.parse_args()
    if options.child is not None:
        work = {
            "imports": only_imports,
            "data": lambda: only_data(options.images),
            "fit": lambda: fit(options.images, options.preset, options.epochs),
            "npz": lambda: write_npz(options.images, options.path),
        }
        work[options.child]()
        return
    common = ["--images", str(options.images), "--preset", options.preset]
    common += ["--epochs", str(options.epochs)]

    def child(name: str, environment: dict[str, str] | None = None) -> Child:
        arguments = [__file__, "--child", name, *common]
        return run_child(arguments, environment, last_line_is_json=False)

    rows: list[dict[str, Any]] = []

    def add(name: str, run: Child, target: int | None = None) -> None:
        rows.append(
            {
                "process": name,
                "peak MB": round(run.peak_bytes / 1e6),
                "target": target,
                "seconds": round(run.seconds, 1),
            }
        )

    if "imports" in options.rows:
        add("imports only", child("imports"))
    if "data" in options.rows:
        add("imports and data", child("data"))
    if "fit" in options.rows:
        add("fit, Python", child("fit"), TARGET_MB)
        add("fit, Python, allocator left alone", child("fit", {"BLTM_KEEP_MEMORY": "0"}))
    if "cli" in options.rows:
        with tempfile.TemporaryDirectory() as directory:
            add("bltm fit", command_line(options, directory), TARGET_MB)
    report(f"Peak memory, {options.images} images", rows, options.json)


if __name__ == "__main__":
    main()
