"""An epoch through the engine against a bare forward/backward/step loop on the same tensors.

Both sides start from the same weights, see the same batches in the same order, gather them from
the same pixels in memory, and use the same optimiser, memory layout and allocator; they end with
the same weights to the last bit, which is checked. Epochs alternate, and medians are compared. The
engine is driven as the workbench drives it, without checkpoints and validation.

Where buffers happen to lie in memory favours one side or the other by some per cent for the life of
a process. So several processes are run, the sides are set up in turned order in every second one,
and the ratio is the median over the processes.

"ready" is a bare loop over batches that were gathered and normalised beforehand: what a loop
that never touches the data would take.
"""

from __future__ import annotations

import copy
import json
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from bltm.data.encoders import fit_encoder
from bltm.data.examples import ImageExamples
from bltm.engine.batches import Task, in_batches, shuffled
from bltm.engine.devices import make_fabric
from bltm.engine.loop import EpochRecord, TrainState, train
from bltm.engine.progress import Reporter
from bltm.engine.schedule import Schedule, make_optimizer
from bltm.engine.stage import Stage
from bltm.engine.supervised import cross_entropy_step
from bltm.engine.tuning import keep_memory
from bltm.engine.workbench import Workbench
from bltm.nets.registry import make_net
from harness import Time, median, noisy_fashion, parser, report, run_child, timed

STAGE, SEED = "benchmark", 0
TARGET = 1.05


def make_task(images: int) -> tuple[Task, ImageExamples]:
    """Return the task of training on noisy Fashion-MNIST."""
    source = noisy_fashion(images)
    examples = fit_encoder(source).encode(source)
    assert isinstance(examples, ImageExamples)
    assert source.labels is not None
    labels = torch.from_numpy(source.labels)
    return Task(examples, torch.arange(images), labels, torch.ones(images)), examples


def engine_epochs(
    workbench: Workbench, classifier: nn.Module, task: Task, schedule: Schedule
) -> Iterator[EpochRecord]:
    """Return the training loop as the workbench calls it."""
    stage = Stage(STAGE, {"classifier": classifier}, cross_entropy_step, task, schedule)
    reporter = Reporter()

    def tick(state: TrainState, steps: int) -> None:
        reporter.step(state.epoch + state.position / steps)
        workbench.stop_requested()

    return train(TrainState.of(stage), stage, workbench.fabric, seed=SEED, tick=tick)


def bare_epochs(
    classifier: nn.Module, task: Task, examples: ImageExamples, schedule: Schedule
) -> Iterator[None]:
    """Train for one epoch at a time, gathering batches from the pixels in memory."""
    optimizer = make_optimizer({"classifier": classifier}, schedule)
    pixels, scale, shift = examples.values, examples.scale.float(), examples.shift.float()
    for epoch in range(schedule.epochs):
        classifier.train()
        for index in in_batches(shuffled(task, SEED, STAGE, epoch), schedule.batch_size):
            x = torch.mul(pixels[index], scale).add_(shift).permute(0, 3, 1, 2)
            loss = functional.cross_entropy(classifier(x), task.labels[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        yield


def ready_epochs(classifier: nn.Module, task: Task, schedule: Schedule) -> Iterator[None]:
    """Train for one epoch at a time on batches made beforehand, the same in every epoch."""
    optimizer = make_optimizer({"classifier": classifier}, schedule)
    indices = in_batches(shuffled(task, SEED, STAGE, 0), schedule.batch_size)
    inputs = list(task.examples.batches(indices, torch.device("cpu")))
    batches = [(x, task.labels[index]) for x, index in zip(inputs, indices, strict=True)]
    for _ in range(schedule.epochs):
        classifier.train()
        for x, y in batches:
            loss = functional.cross_entropy(classifier(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        yield


def measure(net: str, images: int, repeats: int, turned: bool) -> dict[str, Any]:
    """Return median seconds of each side in this process, and the ratios of engine to bare."""
    task, examples = make_task(images)
    workbench = Workbench(make_fabric("cpu"), SEED)
    # One epoch more than is timed: the first one warms up caches and kernels.
    schedule = Schedule(epochs=repeats + 1, lr=0.01, batch_size=128)
    first = workbench.new(STAGE, lambda: make_net(net, examples.shape, 10))
    makers: dict[str, Callable[[nn.Module], Iterator[object]]] = {
        "bare": lambda network: bare_epochs(network, task, examples, schedule),
        "ready": lambda network: ready_epochs(network, task, schedule),
        "engine": lambda network: engine_epochs(workbench, network, task, schedule),
    }
    networks: dict[str, nn.Module] = {}
    sides: dict[str, Iterator[object]] = {}
    for side in list(makers)[:: -1 if turned else 1]:
        networks[side] = copy.deepcopy(first)
        sides[side] = makers[side](networks[side])
        next(sides[side])
    times: dict[str, list[Time]] = {side: [] for side in sides}
    for number in range(repeats):
        # Turning the order around keeps a drift of the machine from favouring one side.
        for side in list(sides)[:: -1 if number % 2 else 1]:
            times[side].append(timed(partial(next, sides[side])))
    weights = [networks[side].state_dict().values() for side in ("bare", "engine")]
    pairs = list(zip(times["engine"], times["bare"], strict=True))
    return {
        "seconds": {side: median([t.wall for t in values]) for side, values in times.items()},
        "ratio": median([engine.wall / bare.wall for engine, bare in pairs]),
        "cpu_ratio": median([engine.cpu / bare.cpu for engine, bare in pairs]),
        "same": all(torch.equal(a, b) for a, b in zip(*weights, strict=True)),
    }


def row(net: str, images: int, options: Namespace) -> dict[str, Any]:
    """Measure in several processes and return one row of medians."""
    arguments = [__file__, "--child", net, str(images), "--repeats", str(options.repeats)]
    runs = [
        run_child([*arguments, *(["--turned"] if number % 2 else [])]).result
        for number in range(options.processes)
    ]
    seconds = {
        side: median([run["seconds"][side] for run in runs]) for side in ("bare", "engine", "ready")
    }
    return {
        "net": net,
        "images": images,
        **{f"{side} s": value for side, value in seconds.items()},
        "images/s": round(images / seconds["engine"]),
        "engine/bare": median([run["ratio"] for run in runs]),
        "CPU time": median([run["cpu_ratio"] for run in runs]),
        "target": TARGET,
        "each process": " ".join(f"{run['ratio']:.3f}" for run in runs),
        "same weights": "yes" if all(run["same"] for run in runs) else "no",
    }


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--nets", nargs="+", default=["compact", "resnet18"])
    arguments.add_argument("--compact-images", type=int, default=10_000)
    arguments.add_argument("--resnet-images", type=int, default=256)
    arguments.add_argument("--processes", type=int, default=4)
    arguments.add_argument("--child", nargs=2, metavar=("NET", "IMAGES"), help="in this process")
    arguments.add_argument("--turned", action="store_true", help="for --child")
    options = arguments.parse_args()
    if options.child:
        keep_memory()
        net, images = options.child
        print(json.dumps(measure(net, int(images), options.repeats, options.turned)))
        return
    rows = [
        row(net, options.compact_images if net == "compact" else options.resnet_images, options)
        for net in options.nets
    ]
    report("Seconds of one epoch: engine against bare loop", rows, options.json)


if __name__ == "__main__":
    main()
