"""Methods that learn from noisy labels: one file each, all with scikit-learn's interface."""
