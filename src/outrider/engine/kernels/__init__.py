"""CPU kernels: weights read once a step, results independent of the batch."""
