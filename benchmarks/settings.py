"""What the process settings are worth: allocator, memory layout, optimiser kernels, threads.

Each variant trains for some steps in a process of its own; variants alternate. Besides the speed
there are page faults and peak memory. ``--busy N`` runs N processes that do nothing but count, to
see what contention does.
"""

from __future__ import annotations

import contextlib
import json
import resource
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from harness import Child, median, parser, report, run_child

BATCH = 128
STEPS = {"compact": 60, "resnet18": 3}
COUNTING = "while True: pass"


@dataclass(frozen=True)
class Variant:
    """A set of settings: arguments of the child process and its environment."""

    name: str
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


OURS = ("--layout", "--fused", "--keep")
VARIANTS = {
    "memory": (
        Variant("torch's defaults"),
        Variant("channels_last", ("--layout",)),
        Variant("fused optimiser", ("--fused",)),
        Variant("memory kept", ("--keep",)),
        Variant("all three (ours)", OURS),
        Variant("ours, huge pages", OURS, {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
    ),
    "precision": (
        Variant("ours", OURS),
        Variant("ours, bf16-mixed", (*OURS, "--bf16")),
    ),
    "threads": (
        Variant("ours", OURS),
        Variant("ours, 1 thread", OURS, {"OMP_NUM_THREADS": "1"}),
        Variant("ours, passive waiting", OURS, {"OMP_WAIT_POLICY": "PASSIVE"}),
        # libgomp, which torch's Linux wheels bring, spins 300,000 times before it sleeps.
        Variant("ours, waiting 10,000 spins", OURS, {"GOMP_SPINCOUNT": "10000"}),
        Variant("ours, waiting 1,000 spins", OURS, {"GOMP_SPINCOUNT": "1000"}),
    ),
}


def run_variant(options: Namespace) -> None:
    """Train for some steps in this process and print what it took."""
    import torch
    from torch.nn import functional

    from bltm.engine.schedule import Schedule, make_optimizer
    from bltm.engine.tuning import keep_memory
    from bltm.nets.registry import make_net

    kept = keep_memory() if options.keep else None
    network = make_net(options.net, (1, 28, 28), 10)
    x, y = torch.randn(BATCH, 1, 28, 28), torch.arange(BATCH) % 10
    if options.layout:
        network = network.to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)
    if options.fused:
        schedule = Schedule(epochs=1, lr=0.01)
        optimizer = make_optimizer({"network": network}, schedule)
    else:
        optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)

    def steps(count: int) -> None:
        for _ in range(count):
            with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
                loss = functional.cross_entropy(network(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    steps(2)
    usage, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    steps(options.steps)
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_SELF)
    result = {
        "seconds": seconds / options.steps,
        "faults": (after.ru_minflt - usage.ru_minflt) / options.steps,
        "system": (after.ru_stime - usage.ru_stime) / options.steps,
        "cpu": (after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime) / options.steps,
        "kept": kept,
    }
    print(json.dumps(result))


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep other processes running for the length of a block."""
    processes = [subprocess.Popen([sys.executable, "-c", COUNTING]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measure(net: str, variants: tuple[Variant, ...], options: Namespace) -> list[dict[str, Any]]:
    """Return a row of medians for each variant."""
    runs: dict[str, list[Child]] = {variant.name: [] for variant in variants}
    steps = str(options.steps or STEPS[net])
    for _ in range(options.repeats):
        for variant in variants:
            arguments = [__file__, "--child", "--net", net, "--steps", steps, *variant.arguments]
            runs[variant.name].append(run_child(arguments, variant.environment))
    first = runs[variants[0].name]

    def typical(children: list[Child], key: str) -> float:
        return median([float(child.result[key]) for child in children])

    return [
        {
            "settings": f"{net}: {name}",
            "images/s": round(BATCH / typical(children, "seconds"), 1),
            "speed-up": median(
                [
                    a.result["seconds"] / b.result["seconds"]
                    for a, b in zip(first, children, strict=True)
                ]
            ),
            "ms/step": 1000 * typical(children, "seconds"),
            "CPU ms/step": 1000 * typical(children, "cpu"),
            "system ms/step": 1000 * typical(children, "system"),
            "faults/step": round(typical(children, "faults")),
            "peak MB": round(max(child.peak_bytes for child in children) / 1e6),
        }
        for name, children in runs.items()
    ]


def main() -> None:
    arguments = parser(__doc__)
    arguments.set_defaults(repeats=3)
    arguments.add_argument("--nets", nargs="+", default=["compact", "resnet18"])
    arguments.add_argument("--group", choices=VARIANTS, default="memory")
    arguments.add_argument("--busy", type=int, default=0, help="other busy processes")
    arguments.add_argument("--steps", type=int, help="timed in each process")
    arguments.add_argument("--child", action="store_true", help="run one variant in this process")
    arguments.add_argument("--net", help="for --child")
    arguments.add_argument("--layout", action="store_true", help="for --child")
    arguments.add_argument("--fused", action="store_true", help="for --child")
    arguments.add_argument("--keep", action="store_true", help="for --child")
    arguments.add_argument("--bf16", action="store_true", help="for --child")
    options = arguments.parse_args()
    if options.child:
        run_variant(options)
        return
    rows: list[dict[str, Any]] = []
    with busy(options.busy):
        for net in options.nets:
            rows += measure(net, VARIANTS[options.group], options)
    title = f"Training steps of {BATCH} images"
    if options.busy:
        title += f" beside {options.busy} busy processes"
    report(title, rows, options.json)


if __name__ == "__main__":
    main()
