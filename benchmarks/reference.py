"""Algorithm 1 the way the authors' published code goes about it, written anew as a yardstick.

Images go one by one from PIL through ToTensor and Normalize in a ``DataLoader``; a warm-up step has
a second train-mode forward for the running accuracy; the posteriors for the collection are
computed under autograd; Eq. 3 picks rows of T*(x) in a Python loop over the batch; the transition
network is run again at every classifier step, forwards and, as nothing freezes it, backwards;
memory layout, allocator and optimiser kernels are the defaults. What is a plain bug there (one
optimiser step per epoch of the transition network, selection on test data) is not repeated: both
sides make the same steps and select alike.

Each habit can be given up with ``--improve``, which tells what it is worth.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from bltm.engine.tuning import keep_memory
from bltm.nets.registry import make_net
from harness import noisy_fashion, start_torch, timed

IMPROVEMENTS = {
    "memory": "batches gathered in memory",
    "forward": "one forward per warm-up step",
    "inference": "posteriors without autograd",
    "gather": "Eq. 3 by gather",
    "frozen": "no gradients through the transition network",
    "cache": "T(x) computed once",
    "fused": "fused optimisers",
    "layout": "channels_last",
    "allocator": "freed memory kept",
}
N_CLASSES, BATCH, SHARE = 10, 128, 0.6
MEAN, STD = 0.286, 0.353

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class PilImages(Dataset[tuple[torch.Tensor, int, int]]):
    """Grey images that are decoded, turned into tensors and normalised one at a time."""

    def __init__(self, pixels: np.ndarray, labels: np.ndarray, index: np.ndarray) -> None:
        self.pixels, self.labels, self.index = pixels, labels, index

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, position: int) -> tuple[torch.Tensor, int, int]:
        row = int(self.index[position])
        image = Image.fromarray(self.pixels[row])
        return normalise(to_tensor(image)), int(self.labels[row]), row


def to_tensor(image: Image.Image) -> torch.Tensor:
    """Return an image as a float tensor (channels, height, width) in [0, 1]."""
    pixels = torch.from_numpy(np.array(image, dtype=np.uint8, copy=True))
    pixels = pixels.view(image.size[1], image.size[0], len(image.getbands()))
    return pixels.permute(2, 0, 1).contiguous().to(torch.float32).div(255)


def normalise(x: torch.Tensor) -> torch.Tensor:
    """Return an image with the data set's mean taken off, in units of its deviation."""
    mean = torch.as_tensor([MEAN], dtype=x.dtype).view(-1, 1, 1)
    std = torch.as_tensor([STD], dtype=x.dtype).view(-1, 1, 1)
    return x.clone().sub_(mean).div_(std)


@dataclass
class Batches:
    """The examples at some rows, as an epoch's batches."""

    pixels: np.ndarray
    labels: np.ndarray
    index: np.ndarray
    workers: int | None
    shuffle: bool

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._loader() if self.workers is not None else self._gathered())

    def _loader(self) -> Iterable[Batch]:
        items = PilImages(self.pixels, self.labels, self.index)
        return DataLoader(items, BATCH, self.shuffle, num_workers=self.workers or 0)

    def _gathered(self) -> Iterator[Batch]:
        index = torch.from_numpy(self.index)
        index = index[torch.randperm(len(index))] if self.shuffle else index
        pixels, labels = torch.from_numpy(self.pixels)[..., None], torch.from_numpy(self.labels)
        for rows in torch.split(index, BATCH):
            x = torch.mul(pixels[rows], 1 / (255 * STD)).sub_(MEAN / STD).permute(0, 3, 1, 2)
            yield x, labels[rows], rows


@dataclass
class Reference:
    """One run of Algorithm 1 with revision.

    Attributes
    ----------
    net, epochs
        Name of the architecture; epochs of warm-up, transition network and classifier.
    pixels, labels
        Images (N, H, W) and their noisy labels.
    workers
        Worker processes of the data loader.
    improved
        Habits that are given up, names in ``IMPROVEMENTS``.
    seconds, losses, steps
        By stage: time, mean loss of the last epoch, and optimiser steps.
    """

    net: str
    epochs: tuple[int, int, int]
    pixels: np.ndarray
    labels: np.ndarray
    workers: int
    improved: frozenset[str]
    seconds: dict[str, float] = field(default_factory=dict)
    losses: dict[str, float] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)

    def run(self) -> None:
        """Run all steps of Algorithm 1."""
        order = np.random.default_rng(0).permutation(len(self.labels))
        held_out = len(order) // 10
        self.validation, train = order[:held_out], order[held_out:]
        warm = self.timed("warm_up", lambda: self.warm_up(train))
        collected = self.timed("collect", lambda: self.collect(warm, train))
        transition = self.timed("transition", lambda: self.learn_transition(warm, *collected))
        self.timed("revise", lambda: self.correct(warm, transition, train))

    def timed(self, stage, work):  # type: ignore[no-untyped-def]
        """Run a stage and note its time."""
        started = time.perf_counter()
        result = work()
        self.seconds[stage] = time.perf_counter() - started
        return result

    def batches(self, index: np.ndarray, shuffle: bool = False) -> Batches:
        """Return the batches of some rows."""
        workers = None if "memory" in self.improved else self.workers
        return Batches(self.pixels, self.labels, index, workers, shuffle)

    def network(self, n_outputs: int) -> nn.Module:
        """Return a new network."""
        module = make_net(self.net, (1, *self.pixels.shape[1:]), n_outputs)
        return module.to(memory_format=torch.channels_last) if self.has("layout") else module

    def has(self, improvement: str) -> bool:
        """Tell whether a habit was given up."""
        return improvement in self.improved

    def warm_up(self, train: np.ndarray) -> nn.Module:
        """Train on the noisy labels."""
        network = self.network(N_CLASSES)
        optimizer = torch.optim.SGD(
            network.parameters(), lr=0.01, momentum=0.9, fused=self.has("fused")
        )
        best, kept = -1.0, network.state_dict()
        for _ in range(self.epochs[0]):
            network.train()
            total, right = 0.0, 0
            for x, y, _ in self.batches(train, shuffle=True):
                logits = network(x)
                loss = functional.cross_entropy(logits, y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                predicted = logits if self.has("forward") else network(x)
                right += int((predicted.argmax(1) == y).sum())
                total += float(loss.detach()) * len(y)
                self.count("warm_up")
            self.losses["warm_up"] = total / len(train)
            accuracy = self.accuracy(lambda x, _: network(x), [network])
            if accuracy > best:
                best, kept = accuracy, copy.deepcopy(network.state_dict())
        network.load_state_dict(kept)
        return network

    def collect(self, network: nn.Module, train: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the most confident share of the training rows, and Bayes labels of all rows."""
        network.eval()
        height, label = np.zeros(len(self.labels)), np.zeros(len(self.labels), dtype=np.int64)
        with torch.set_grad_enabled(not self.has("inference")):
            for x, _, rows in self.batches(train):
                top = functional.softmax(network(x), dim=1).max(dim=1)
                height[rows.numpy()] = top.values.detach().numpy()
                label[rows.numpy()] = top.indices.numpy()
        count = round(SHARE * len(train))
        return train[np.argsort(-height[train], kind="stable")[:count]], label

    def learn_transition(self, warm: nn.Module, index: np.ndarray, bayes: np.ndarray) -> nn.Module:
        """Train the transition network on the collected rows."""
        network = self.network(N_CLASSES**2)
        shared = {k: v for k, v in warm.state_dict().items() if not k.startswith("fc.")}
        network.load_state_dict(network.state_dict() | shared)
        optimizer = torch.optim.SGD(
            network.parameters(), lr=0.01, momentum=0.9, fused=self.has("fused")
        )
        network.train()
        for _ in range(self.epochs[1]):
            total = 0.0
            for x, y, rows in self.batches(index, shuffle=True):
                matrices, labels = matrix(network, x), torch.from_numpy(bayes)[rows]
                if self.has("gather"):
                    chosen = matrices[torch.arange(len(labels)), labels]
                else:
                    chosen = torch.stack([matrices[b, labels[b]] for b in range(len(labels))])
                loss = functional.nll_loss(chosen.log(), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += float(loss.detach()) * len(y)
                self.count("transition")
            self.losses["transition"] = total / len(index)
        return network.eval()

    def correct(self, warm: nn.Module, transition: nn.Module, train: np.ndarray) -> None:
        """Train classifier and revision by forward correction."""
        classifier = copy.deepcopy(warm)
        delta = nn.Parameter(torch.zeros(N_CLASSES, N_CLASSES))
        optimizer = torch.optim.Adam(
            [*classifier.parameters(), delta], lr=5e-7, weight_decay=1e-4, fused=self.has("fused")
        )
        cached = self.all_matrices(transition) if self.has("cache") else None

        def noisy(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
            # In the authors' code nothing is frozen: each backward of the classifier's training
            # goes through the transition network too, and fills gradients that nobody reads.
            with torch.set_grad_enabled(torch.is_grad_enabled() and not self.has("frozen")):
                T = matrix(transition, x) if cached is None else cached[rows]
            T = (T + delta).clamp_min(0.0)
            T = T / T.sum(dim=2, keepdim=True)
            probs = functional.softmax(classifier(x), dim=1)
            return torch.bmm(probs.unsqueeze(1), T).squeeze(1)

        best = -1.0
        for _ in range(self.epochs[2]):
            classifier.train()
            total = 0.0
            for x, y, rows in self.batches(train, shuffle=True):
                loss = functional.nll_loss(noisy(x, rows).log(), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += float(loss.detach()) * len(y)
                self.count("revise")
            self.losses["revise"] = total / len(train)
            accuracy = self.accuracy(noisy, [classifier])
            if accuracy > best:
                best, kept = accuracy, copy.deepcopy(classifier.state_dict())
        classifier.load_state_dict(kept)

    @torch.no_grad()
    def all_matrices(self, transition: nn.Module) -> torch.Tensor:
        """Return T*(x) of all rows."""
        everyone = np.arange(len(self.labels))
        return torch.cat([matrix(transition, x) for x, _, _ in self.batches(everyone)])

    @torch.no_grad()
    def accuracy(self, predict, networks: list[nn.Module]) -> float:  # type: ignore[no-untyped-def]
        """Return the accuracy on the noisy labels held out."""
        for network in networks:
            network.eval()
        right = sum(
            int((predict(x, rows).argmax(1) == y).sum())
            for x, y, rows in self.batches(self.validation)
        )
        return right / max(1, len(self.validation))

    def count(self, stage: str) -> None:
        """Note a step."""
        self.steps[stage] = self.steps.get(stage, 0) + 1


def matrix(network: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Return T*(x), shape (B, C, C)."""
    logits: torch.Tensor = network(x)
    return functional.softmax(logits.view(-1, N_CLASSES, N_CLASSES), dim=2)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--net", default="compact")
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--epochs", type=int, nargs=3, default=(1, 1, 2))
    parser.add_argument("--workers", type=int, default=0, help="of the data loader")
    parser.add_argument("--improve", nargs="*", default=(), choices=IMPROVEMENTS)
    options = parser.parse_args()
    source = noisy_fashion(options.images)
    assert source.labels is not None
    if "allocator" in options.improve:
        keep_memory()
    start_torch()
    torch.manual_seed(0)
    run = Reference(
        options.net,
        tuple(options.epochs),
        source.inputs[..., 0],
        source.labels,
        options.workers,
        frozenset(options.improve),
    )
    taken = timed(run.run)
    result = {
        "seconds": taken.wall,
        "cpu_seconds": taken.cpu,
        "stages": run.seconds,
        "losses": run.losses,
        "steps": run.steps,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
