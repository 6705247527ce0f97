"""The demonstration: real digits, labels made wrong in a known way, three ways to learn."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bltm import __version__
from bltm.core.errors import InputError
from bltm.core.files import read_json, write_json
from bltm.runs.directory import RunDirectory
from bltm.runs.noise import write_noisy

DATA, MODEL, METHOD, BASELINE = "digits", "instance", "bltm-v", "cross-entropy"
CEILING = "cross-entropy, right labels"
RESULTS, NOISY, MANIFEST, RUN = "results.json", "noisy.npz", "noisy.manifest.json", "run"


@dataclass(frozen=True)
class DemoFit:
    """One fit of the demonstration; the run of the first seed is kept in ``run``."""

    name: str
    seed: int
    rate: float
    epochs: int | None
    run: str | None = None


@dataclass(frozen=True)
class DemoResult:
    """What came out of a fit: accuracy on test examples with right labels."""

    name: str
    seed: int
    accuracy: float
    realised_rate: float
    seconds: float


def run_demo(
    out: Path,
    rate: float,
    seeds: int,
    say: Callable[[str], None],
    *,
    epochs: int | None = None,
    overwrite: bool = False,
) -> str:
    """Run the demonstration, write its results and return them as a table in words.

    Parameters
    ----------
    out
        Directory for ``results.json``, the noisy data of the first seed and its run.
    rate
        Nominal share of wrong labels.
    seeds
        Number of repetitions, each with noise and networks of its own.
    say
        Takes a line for the user while it goes on.
    epochs
        Passes over the data in every stage, instead of the methods' own.
    overwrite
        Whether an earlier demonstration may be replaced.
    """
    _prepare(out, overwrite)
    started = time.perf_counter()
    settings = {"data": DATA, "noise": MODEL, "rate": rate, "seeds": seeds, "epochs": epochs}
    write_json(out / RESULTS, {"bltm": __version__, "demo": settings, "results": []})
    say(write_noisy(DATA, out / NOISY, model=MODEL, rate=rate, seed=0, options={}))
    fits = [
        DemoFit(name, seed, rate, epochs, str(out) if (name, seed) == (METHOD, 0) else None)
        for name in (METHOD, BASELINE, CEILING)
        for seed in range(seeds)
    ]
    results = []
    for done, result in enumerate(_in_processes(fits), start=1):
        say(f"{done} of {len(fits)} fits done: {result.name}, seed {result.seed}")
        results.append(result)
    results.sort(key=lambda result: (result.name, result.seed))
    seconds = time.perf_counter() - started
    write_json(
        out / RESULTS,
        {
            "bltm": __version__,
            "demo": settings,
            "seconds": seconds,
            "results": [asdict(result) for result in results],
        },
    )
    return describe(results, seconds, out)


def describe(results: Iterable[DemoResult], seconds: float, out: Path) -> str:
    """Return the comparison as a table and two sentences."""
    by_name: dict[str, list[float]] = {BASELINE: [], METHOD: [], CEILING: []}
    for result in results:
        by_name[result.name].append(100 * result.accuracy)
    count = len(by_name[METHOD])
    lines = [f"{'accuracy on right test labels, %':<34}{'mean':>6}  {'spread':>6}   each seed"]
    for name, values in by_name.items():
        spread = np.std(values, ddof=1) if count > 1 else 0.0
        each = " ".join(f"{value:.1f}" for value in values)
        lines.append(f"{name:<34}{np.mean(values):>6.1f}  ±{spread:>5.1f}   {each}")
    pairs = list(zip(by_name[METHOD], by_name[BASELINE], strict=True))
    wins, ties = sum(a > b for a, b in pairs), sum(a == b for a, b in pairs)
    low, high = np.mean(by_name[BASELINE]), np.mean(by_name[CEILING])
    text = f"{METHOD} is ahead of {BASELINE} with {wins} of {count} seeds"
    text += f" and level with {ties}" if ties else ""
    if high > low:
        share = (np.mean(by_name[METHOD]) - low) / (high - low)
        text += f"; it recovers {100 * share:.0f} % of what the wrong labels cost"
    lines += [
        f"{text}.",
        f"Took {seconds:.0f} s. {out / RESULTS} has the figures, {out / RUN} is a run directory "
        f"such as 'bltm fit {out / NOISY} --out {out / RUN}' makes.",
    ]
    return "\n".join(lines)


def one_fit(fit: DemoFit) -> DemoResult:
    """Fit one method with one seed and judge it on the test part, whose labels are right."""
    import torch

    from bltm.data.registry import load_dataset
    from bltm.methods.persistence import load
    from bltm.methods.registry import make_method
    from bltm.noise import make_noise
    from bltm.runs.config import RunConfig
    from bltm.runs.fit import FitOptions, fit_run

    # The networks are small and the fits many: one core for each fit is the fastest.
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    started = time.perf_counter()
    bundle = load_dataset(DATA)
    train, test = bundle.train, bundle.test
    assert train.labels is not None
    assert test is not None
    noisy = make_noise(train.inputs, train.labels, MODEL, fit.rate, fit.seed)
    if fit.run is not None:
        config = RunConfig(str(Path(fit.run) / NOISY), epochs=fit.epochs, device="cpu")
        run = Path(fit.run) / RUN
        fit_run(config, run, FitOptions(quiet=True), lambda message: None)
        model = load(run, device="cpu")
    else:
        name = BASELINE if fit.name == CEILING else fit.name
        labels = train.labels if fit.name == CEILING else noisy.y_noisy
        model = make_method(name, random_state=fit.seed, epochs=fit.epochs, device="cpu")
        model.fit_source(replace(train, labels=labels))
    predicted = model.classes_[model.predict_proba_source(test).argmax(axis=1)]
    return DemoResult(
        name=fit.name,
        seed=fit.seed,
        accuracy=float(np.mean(predicted == test.labels)),
        realised_rate=float(noisy.meta["realised_rate"]),
        seconds=time.perf_counter() - started,
    )


def _in_processes(fits: list[DemoFit]) -> Iterable[DemoResult]:
    """Yield results as they come; an interrupt does not wait for fits that are going on."""
    others = set(multiprocessing.active_children())
    # A forked process would inherit the locks of threads that it does not have.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        min(len(fits), _cores()), mp_context=context, initializer=_ignore_interrupts
    ) as pool:
        try:
            for future in as_completed([pool.submit(one_fit, fit) for fit in fits]):
                yield future.result()
        except BaseException:
            for process in set(multiprocessing.active_children()) - others:
                process.kill()
            raise


def _ignore_interrupts() -> None:
    # Ctrl-C reaches all processes of a terminal; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _prepare(out: Path, overwrite: bool) -> None:
    """Make the directory, or empty one that an earlier demonstration made."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        if not _is_demo(out):
            raise InputError(
                "out", f"'{out}' exists and is not a demonstration of bltm", "Choose another place."
            )
        if not overwrite:
            raise InputError(
                "out", f"'{out}' exists already", "Choose another place or give --overwrite."
            )
        RunDirectory(out / RUN).remove()
        for name in (NOISY, MANIFEST, RESULTS):
            (out / name).unlink(missing_ok=True)
    out.mkdir(parents=True, exist_ok=True)


def _is_demo(out: Path) -> bool:
    try:
        values: dict[str, Any] = read_json(out / RESULTS)
    except (OSError, ValueError):
        return False
    return "demo" in values
