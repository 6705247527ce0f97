"""Runs on disk: fit, resume, predict, noise, the demonstration."""
