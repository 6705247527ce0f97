"""Yardsticks and experiments: estimators that answer a question and are no methods for users."""

from bltm.benchmark.variants.registry import VARIANTS, Variant, make_variant
from bltm.benchmark.variants.truth import Truth

__all__ = ["VARIANTS", "Truth", "Variant", "make_variant"]
