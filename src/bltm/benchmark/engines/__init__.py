"""Engines make the runs of a grid: in processes of this machine, or on a Ray cluster."""

from bltm.benchmark.engines.events import Engine, Event, Finished, Started
from bltm.benchmark.engines.local import LocalEngine
from bltm.benchmark.engines.ray import RayEngine

__all__ = ["Engine", "Event", "Finished", "LocalEngine", "RayEngine", "Started"]
