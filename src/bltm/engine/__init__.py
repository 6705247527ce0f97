"""How networks are trained, judged on noisy validation data, saved and used.

The loop of ``loop.py`` is the only place that computes gradients; methods give it a step.
"""
