"""What all methods share: scikit-learn's interface, from raw inputs to a fitted classifier."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from bltm.core.errors import CollapseWarning, InputError
from bltm.core.evidence import Evidence
from bltm.core.records import FitResult, NoisyData, Split
from bltm.data.labels import encode_labels
from bltm.data.source import Source, as_source
from bltm.data.splits import split_noisy
from bltm.engine.augment import IMAGE_AUGMENTATION, get_augmentation
from bltm.engine.devices import make_fabric, split_device
from bltm.engine.job import Job
from bltm.engine.predict import BATCH, stream_outputs
from bltm.engine.progress import make_reporter
from bltm.engine.schedule import PlannedStage, Schedule
from bltm.engine.transition_model import Transition
from bltm.engine.tuning import keep_memory
from bltm.engine.workbench import Workbench
from bltm.methods.inputs import Weights, check_folds, checked_labels, draw_seed, is_flat, noisy_data
from bltm.methods.transitions import BLOCK, TopTransitions, gather_transitions, row_of

Recipe = TypeVar("Recipe")


@dataclass(eq=False, repr=False, kw_only=True)
class NoisyLabelClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of all methods. A method adds its own parameters, ``_fit`` and ``plan``.

    Parameters
    ----------
    net
        "auto", the name of a network, or a function from the number of outputs to a module.
    preset
        "default", made for modest hardware; "paper" for the published schedule.
    epochs, batch_size, lr
        Override the preset's in every stage.
    augment
        Random changes of training images: "none", "crop-flip", "crop" or "flip"; "auto" is
        "crop-flip" for images and "none" for anything else.
    weights
        File of weights to start from.
    validation_fraction
        Share of the noisy examples that is held out to select epochs and lengths.
    audit_folds
        Number of folds (2 or more) for judging each training label by classifiers that have not
        seen it: an audit finds more wrong labels, and the last stage is trained that much more
        often. 0 judges in sample. Methods that cannot train their last stage alone ignore it.
    classes
        All classes, where some may be absent from the labels.
    image_size
        Side to which image files are resized.
    device, precision
        Where and how to compute: "auto", "cpu", "cuda", "mps"; "32-true", "bf16-mixed".
    random_state
        Seed of all random streams.
    verbose
        1 for progress.

    Attributes
    ----------
    classes_
        The class labels.
    classifier_
        A torch module that gives logits.
    transition_
        A module that gives T or T(x), or None.
    suspicion_
        How much speaks against each training label: ``values``, and whether they are a
        "probability" or a "score".
    evidence_
        What is known of each training example: all that an audit needs.
    encoder_, history_, findings_, probs_, posterior_, collected_, seed_
        How inputs are encoded; one record per epoch and stage; what the method found, in plain
        values; the classifier's probabilities of the training examples; what an audit needs; the
        seed.
    """

    # Why the loss of a batch cannot be computed in parts by several processes, where it cannot.
    couples_batch: ClassVar[str | None] = None

    net: str | Callable[[int], nn.Module] = field(default="auto", kw_only=False)
    preset: str = "default"
    epochs: int | None = None
    batch_size: int | None = None
    lr: float | None = None
    augment: str = "none"
    weights: str | Path | None = None
    validation_fraction: float = 0.1
    audit_folds: int = 0
    classes: Sequence[Any] | None = None
    image_size: int | None = None
    device: str = "auto"
    precision: str = "32-true"
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    def _fit(self, job: Job) -> FitResult:
        """Train on noisy examples; every method's own part."""
        raise NotImplementedError

    def plan(self, n: int) -> list[PlannedStage]:
        """Return the training stages for ``n`` training examples, as far as they are known."""
        raise NotImplementedError

    def full_plan(self, n: int) -> list[PlannedStage]:
        """Return the stages of ``plan``, and about what an audit by folds adds to them."""
        stages = self.plan(n)
        check_folds(self.audit_folds)
        if self.audit_folds == 0:
            return stages
        rest = n - n // self.audit_folds
        fold = self._judge(stages)._replace(examples=rest)
        return [*stages, *[fold] * self.audit_folds]

    def _judge(self, stages: list[PlannedStage]) -> PlannedStage:
        """Return about what is trained to judge the examples of a fold: the longest stage again."""
        longest = max(stages, key=lambda stage: stage.work)
        return longest._replace(stage="audit", schedule=replace(longest.schedule, lengths=()))

    def _net(self, input_shape: tuple[int, ...]) -> str | Callable[[int], nn.Module]:
        """Return the architecture for inputs of a shape; the paper's ResNets for its preset.

        It has 18 layers for grey images and 34 for colour.
        """
        if self.net != "auto" or self.preset == "default" or len(input_shape) != 3:
            return self.net
        return "resnet18" if input_shape[0] == 1 else "resnet34"

    def _augment(self, input_shape: tuple[int, ...]) -> str:
        """Return the name of the augmentation for inputs of a shape; "auto" changes only images."""
        if self.augment != "auto":
            return self.augment
        return IMAGE_AUGMENTATION if len(input_shape) == 3 else "none"

    def _chosen(self, presets: Mapping[str, Recipe]) -> Recipe:
        """Return the preset that was asked for."""
        if self.preset not in presets:
            raise InputError(
                "preset", f"unknown: {self.preset!r}", f"Use one of {', '.join(presets)}."
            )
        return presets[self.preset]

    def _schedule(self, presets: Mapping[str, Schedule]) -> Schedule:
        """Return the preset's schedule with the user's epochs, batch size and learning rate."""
        return self._overridden(self._chosen(presets))

    def _overridden(self, schedule: Schedule) -> Schedule:
        return schedule.overridden(self.epochs, self.batch_size, self.lr)

    def check_processes(self, world_size: int) -> None:
        """Refuse several processes where the method cannot give the result of one."""
        if world_size > 1 and self.couples_batch is not None:
            raise InputError(
                "devices",
                f"{type(self).__name__} cannot be trained by {world_size} processes: "
                f"{self.couples_batch}",
                "Use one process.",
            )

    def fit(
        self, X: Any, y: Any = None, sample_weight: Weights = None, trusted: Weights = None
    ) -> Self:
        """Learn from examples and labels that are partly wrong.

        Parameters
        ----------
        X
            Array of numbers (N, d), images (N, H, W) or (N, H, W, channels), pandas DataFrame,
            torch ``Dataset`` or tensor.
        y
            Given labels, right or wrong: strings or integers. A ``Dataset`` may bring its own.
        sample_weight
            Weight of each example; a weight of two counts like two copies.
        trusted
            Mask of labels known to be right.
        """
        return self.fit_source(
            self._source(X, y), Workbench, sample_weight=sample_weight, trusted=trusted
        )

    def fit_source(
        self,
        source: Source,
        workbench: Callable[..., Workbench] = Workbench,
        *,
        sample_weight: Weights = None,
        trusted: Weights = None,
        fabric: Fabric | None = None,
        before: Callable[[Job], None] | None = None,
    ) -> Self:
        """Learn from a source.

        Parameters
        ----------
        source
            Examples with noisy labels.
        workbench
            Makes the workbench, which says where stages keep their state. It is called when the
            data has been read and checked.
        sample_weight, trusted
            As for ``fit``.
        fabric
            Devices and processes, already launched; by default one device.
        before
            Called with the job before the first stage.
        """
        started = time.perf_counter()
        keep_memory()
        seed = draw_seed(self.random_state)
        data, self.encoder_ = noisy_data(
            source, self.classes, sample_weight, trusted, self.image_size
        )
        self.classes_ = data.classes
        self.input_shape_ = data.examples.shape
        self.net_ = self._net(self.input_shape_)
        fabric = make_fabric(self.device, self.precision) if fabric is None else fabric
        self.check_processes(fabric.world_size)
        # Processes that draw a fresh seed each must work with one.
        self.seed_ = int(fabric.broadcast(seed))
        split = split_noisy(data, self.validation_fraction, self.seed_)
        reporter = make_reporter(self.verbose if fabric.is_global_zero else 0)
        bench = workbench(fabric=fabric, seed=self.seed_, reporter=reporter)
        augment = get_augmentation(self._augment(self.input_shape_), self.input_shape_)
        check_folds(self.audit_folds)
        job = Job(data, split, bench, self.net_, self.weights, augment, self.audit_folds)
        if before is not None:
            before(job)
        result = self._fit(job)
        self.evidence_ = Evidence.of(data, split, result, source.id_name)
        self._keep(result, data, split, bench, time.perf_counter() - started)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable right label of each example."""
        # Before anything else: X is only looked at by a fitted estimator.
        check_is_fitted(self)
        labels: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each right label, shape (N, C), columns as ``classes_``."""
        check_is_fitted(self)
        return self.predict_proba_source(self._source(X, for_prediction=True))

    def predict_proba_source(self, source: Source) -> NDArray[np.float64]:
        """Return the probabilities for a source, shape (N, C)."""
        result = np.zeros((len(source), len(self.classes_)))
        for index, logits in self._stream(self.classifier_, source):
            result[index.numpy()] = logits.double().softmax(dim=1).cpu().numpy()
        return result

    def predict_transition(
        self, X: Any, rows: Any = None, top_k: int | None = None
    ) -> NDArray[np.float32] | TopTransitions:
        """Return T*(x) of each example, computed batch by batch.

        Parameters
        ----------
        X
            Examples as for ``predict``.
        rows
            None for whole matrices (N, C, C); ``"predicted"`` for the row of each example's
            predicted label, or an array with a class label for each example: (N, C).
        top_k
            Keep the k most probable noisy labels of each row only. The result then has fields
            ``labels`` and ``probs``, each of shape (..., k).
        """
        check_is_fitted(self)
        if not isinstance(self.transition_, Transition):
            raise InputError(
                "predict_transition",
                f"{type(self).__name__} does not estimate a transition matrix",
                "Use a method that does, such as BLTMClassifier.",
            )
        source = self._source(X, for_prediction=True)
        wanted = None
        if rows is not None:
            predicted = isinstance(rows, str) and rows == "predicted"
            wanted = (
                self.predict_proba_source(source).argmax(axis=1)
                if predicted
                else encode_labels(rows, self.classes_, warn=False)[0]
            )
        if wanted is None:
            size = min(BATCH, max(1, BLOCK // len(self.classes_) ** 2))
            batches = self._stream(self.transition_, source, batch_size=size)
        else:
            batches = self._stream(self.transition_, source, row_of(self.transition_, wanted))
        return gather_transitions(batches, len(source), self.classes_, wanted, top_k)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a directory, as safetensors and JSON; see :func:`bltm.load`."""
        from bltm.methods.persistence import save

        check_is_fitted(self)
        save(self, Path(path))

    def _source(self, X: Any, y: Any = None, for_prediction: bool = False) -> Source:
        if isinstance(X, Source):
            return X
        reset = not for_prediction
        if hasattr(X, "iloc") and hasattr(X, "columns"):
            validate_data(self, X, skip_check_array=True, reset=reset)
        elif not isinstance(X, (torch.Tensor, torch.utils.data.Dataset)) and is_flat(X):
            least = 2 if reset else 1
            X = validate_data(
                self, X, ensure_all_finite="allow-nan", ensure_min_samples=least, reset=reset
            )
        if reset and not (y is None and isinstance(X, torch.utils.data.Dataset)):
            y = checked_labels(type(self).__name__, y)
        return as_source(X, y, for_prediction=for_prediction)

    def _stream(
        self,
        module: nn.Module,
        source: Source,
        apply: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
        batch_size: int = BATCH,
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        accelerator, numbers = split_device(self.device)
        number = numbers[0] if isinstance(numbers, list) else 0
        device = (
            torch.device(accelerator) if accelerator == "cpu" else torch.device(accelerator, number)
        )
        examples = self.encoder_.encode(source)
        index = np.arange(len(source))
        return stream_outputs(module, examples, index, device, apply, batch_size)

    def _keep(
        self, result: FitResult, data: NoisyData, split: Split, bench: Workbench, seconds: float
    ) -> None:
        self.classifier_ = result.classifier.cpu().eval()
        self.transition_ = None if result.transition is None else result.transition.cpu().eval()
        self.probs_, self.suspicion_ = result.probs, result.suspicion
        self.posterior_, self.collected_ = result.posterior, result.collected
        self.history_ = bench.store.history
        self.findings_ = {
            **result.findings,
            "examples": len(data),
            "training_examples": len(split.train),
            "validation_examples": len(split.validation),
            # How often each training example went through the training of a network.
            "passes": sum(o.examples_seen for o in bench.outcomes) / max(1, len(split.train)),
            "lengths": bench.lengths,
            "augment": self._augment(self.input_shape_),
            "suspicion": result.suspicion.kind,
            "seconds": seconds,
        }
        if result.findings.get("predicted_classes") == 1:
            warnings.warn(
                "The classifier predicts one and the same class for all training examples: "
                "training has collapsed. Compare with method='cross-entropy', lower the learning "
                "rate, or give more examples.",
                CollapseWarning,
                stacklevel=3,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
