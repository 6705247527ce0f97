"""Data of every kind as one record, encoders that make network inputs of it, registered sets.

``open_source`` and ``as_source`` return a ``Source``; ``fit_encoder`` learns how to turn its
inputs into ``Examples``; ``encode_labels``, ``group_rows`` and ``merge_duplicates`` give the rest
of a ``NoisyData``; ``split_noisy`` and ``folds`` divide it; ``load_dataset`` brings registered
data sets.
"""

from bltm.data.datasets import DatasetBundle
from bltm.data.encoders import Encoder, encoder_from_json, fit_encoder
from bltm.data.groups import group_rows
from bltm.data.labels import encode_labels
from bltm.data.registry import DATASETS, dataset_rows, load_dataset, load_test
from bltm.data.source import Source, as_source, open_source
from bltm.data.splits import canonical_order, folds, merge_duplicates, split_noisy

__all__ = [
    "DATASETS",
    "DatasetBundle",
    "Encoder",
    "Source",
    "as_source",
    "canonical_order",
    "dataset_rows",
    "encode_labels",
    "encoder_from_json",
    "fit_encoder",
    "folds",
    "group_rows",
    "load_dataset",
    "load_test",
    "merge_duplicates",
    "open_source",
    "split_noisy",
]
