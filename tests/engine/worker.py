"""One of several processes that fit one estimator together; started by test_devices.py."""

import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from bltm.core.records import NoisyData
from bltm.data.examples import VectorExamples
from bltm.data.toy import ToyProblem
from bltm.engine.batches import Task
from bltm.engine.devices import make_fabric
from bltm.engine.selection import HeldOut
from bltm.methods.bltm import BLTMClassifier
from bltm.methods.cross_entropy import CrossEntropyClassifier


def fitted() -> tuple[BLTMClassifier, np.ndarray]:
    """The fit that is compared: 300 examples, of which 270 train in batches of 32."""
    sample = ToyProblem(radius=2.5).sample(300, seed=0)
    model = BLTMClassifier(epochs=2, batch_size=32, random_state=0, device="cpu", rounds=1)
    return model.fit(sample.x, sample.y_noisy), sample.x


def unseeded() -> tuple[np.ndarray, np.ndarray]:
    """Data for a fit without a seed, of which the processes must agree on one."""
    sample = ToyProblem(radius=2.5).sample(100, seed=0)
    return sample.x, sample.y_noisy


def held_out() -> np.ndarray:
    """Losses and weights of three labels, of which two processes judge two and one."""
    rows = np.arange(3)
    data = NoisyData(
        examples=VectorExamples(torch.zeros(3, 2)),
        labels=np.array([0, 1, 0]),
        classes=np.arange(2),
        weights=np.array([1.0, 2.0, 3.0]),
        trusted=np.zeros(3, dtype=bool),
        group=rows,
        ids=rows,
    )
    log_probs = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]]).log()
    judged = HeldOut.of(
        {},
        lambda _, batch: log_probs[batch.index],
        Task.of(data, np.array([2, 0, 1])),
        make_fabric("cpu"),
    )
    return torch.stack([judged.losses, judged.weights]).numpy()


def results(model: BLTMClassifier, x: np.ndarray) -> dict[str, np.ndarray]:
    """Everything that should not depend on the number of processes."""
    assert model.transition_ is not None
    values = {
        "proba": model.predict_proba(x),
        "transition": np.asarray(model.predict_transition(x)),
        "posterior": model.posterior_.probs,
        "collected": model.collected_.indices,
        "noise_rate": np.array(model.findings_["noise_rate"]),
        "held_out": held_out(),
        "losses": np.array([line["loss"] for line in model.history_]),
        "val_loss": np.array([line.get("val_loss", 0.0) for line in model.history_]),
        "val_accuracy": np.array([line.get("val_accuracy", 0.0) for line in model.history_]),
    }
    for name, value in model.classifier_.state_dict().items():
        values[f"classifier.{name}"] = value.numpy()
    for name, value in model.transition_.state_dict().items():
        values[f"transition.{name}"] = value.numpy()
    return values


def main(rank: int, size: int, directory: Path) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{directory}/rendezvous", rank=rank, world_size=size
    )
    np.savez(directory / f"{rank}.npz", **results(*fitted()))
    model = CrossEntropyClassifier(epochs=1, device="cpu").fit(*unseeded())
    np.savez(
        directory / f"unseeded-{rank}.npz",
        seed=model.seed_,
        **{name: value.numpy() for name, value in model.classifier_.state_dict().items()},
    )
    assert dist.is_initialized()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
