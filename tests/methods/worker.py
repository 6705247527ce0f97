"""One of several processes that fit methods together; started by test_processes.py."""

import sys
import warnings
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from bltm.data.toy import ToyProblem
from bltm.methods.registry import METHODS, make_method

DIVISIBLE = [name for name in METHODS if make_method(name).couples_batch is None]


def fitted(name: str) -> dict[str, np.ndarray]:
    """Everything of a fit that should not depend on the number of processes."""
    sample = ToyProblem(radius=2.5).sample(200, seed=0)
    model = make_method(name, epochs=2, batch_size=32, random_state=0, device="cpu")
    model.fit(sample.x, sample.y_noisy)
    return {
        "proba": model.predict_proba(sample.x),
        "suspicion": model.suspicion_.values,
        "losses": np.array([line["loss"] for line in model.history_]),
        "passes": np.array(model.findings_["passes"]),
    }


def main(rank: int, size: int, directory: Path) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    dist.init_process_group(
        "gloo", init_method=f"file://{directory}/rendezvous", rank=rank, world_size=size
    )
    for name in DIVISIBLE:
        np.savez(directory / f"{name}-{rank}.npz", **fitted(name))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
