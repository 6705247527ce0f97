"""Grids of runs: methods, data sets, noise and seeds, and the rows that come out."""
