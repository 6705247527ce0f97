"""An epoch through the engine against a bare forward/backward/step loop on the same tensors.

Both sides start from the same weights, see the same batches in the same order, gather them from
the same pixels in memory, and use the same optimiser, memory layout and allocator; they end with
the same weights to the last bit, which is checked. Epochs alternate, and medians are compared. The
engine is driven as the workbench drives it, without checkpoints and validation.

"ready" is a bare loop over batches that were gathered and normalised beforehand: what a loop
that never touches the data would take.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass

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
from bltm.engine.supervised import cross_entropy_step
from bltm.engine.tuning import keep_memory
from bltm.engine.workbench import Workbench
from bltm.nets.registry import make_net
from harness import median, noisy_fashion, parser, report, timed

STAGE, SEED = "benchmark", 0
TARGET = 1.05


@dataclass(frozen=True)
class Case:
    """A network and how many images it is trained on."""

    net: str
    images: int


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
    modules = {"classifier": classifier}
    reporter = Reporter()

    def tick(_: TrainState, __: int) -> None:
        reporter.step()
        workbench.stop_requested()

    return train(
        TrainState(modules, make_optimizer(modules, schedule)),
        cross_entropy_step,
        task,
        schedule,
        workbench.fabric,
        stage=STAGE,
        seed=SEED,
        tick=tick,
    )


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


def measure(case: Case, repeats: int) -> dict[str, object]:
    """Return one row: median seconds of each side and their ratio."""
    task, examples = make_task(case.images)
    workbench = Workbench(make_fabric("cpu"), SEED)
    # One epoch more than is timed: the first one warms up caches and kernels.
    schedule = Schedule(epochs=repeats + 1, lr=0.01, batch_size=128)
    first = workbench.new(STAGE, lambda: make_net(case.net, examples.shape, 10))
    networks = {side: copy.deepcopy(first) for side in ("bare", "engine", "ready")}
    sides: dict[str, Iterator[object]] = {
        "bare": bare_epochs(networks["bare"], task, examples, schedule),
        "engine": engine_epochs(workbench, networks["engine"], task, schedule),
        "ready": ready_epochs(networks["ready"], task, schedule),
    }
    for epochs in sides.values():
        next(epochs)
    times = {side: [] for side in sides}
    for number in range(repeats):
        # Turning the order around keeps a drift of the machine from favouring one side.
        for side in list(sides)[:: 1 if number % 2 else -1]:
            times[side].append(timed(lambda side=side: next(sides[side])))  # type: ignore[misc]
    same = all(
        torch.equal(a, b)
        for a, b in zip(
            networks["bare"].state_dict().values(),
            networks["engine"].state_dict().values(),
            strict=True,
        )
    )
    wall = {side: median([t.wall for t in values]) for side, values in times.items()}
    pairs = zip(times["engine"], times["bare"], strict=True)
    ratios = [(engine.wall / bare.wall, engine.cpu / bare.cpu) for engine, bare in pairs]
    return {
        "net": case.net,
        "images": case.images,
        "bare s": wall["bare"],
        "engine s": wall["engine"],
        "ready s": wall["ready"],
        "images/s": round(case.images / wall["engine"]),
        "engine/bare": median([ratio for ratio, _ in ratios]),
        "CPU time": median([ratio for _, ratio in ratios]),
        "engine/ready": wall["engine"] / wall["ready"],
        "target": TARGET,
        "same weights": "yes" if same else "no",
    }


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--nets", nargs="+", default=["compact", "resnet18"])
    arguments.add_argument("--compact-images", type=int, default=10_000)
    arguments.add_argument("--resnet-images", type=int, default=384)
    options = arguments.parse_args()
    keep_memory()
    rows = []
    for net in options.nets:
        images = options.compact_images if net == "compact" else options.resnet_images
        rows.append(measure(Case(net, images), options.repeats))
    report("Seconds of one epoch: engine against bare loop", rows, options.json)


if __name__ == "__main__":
    main()
