"""Load, workloads, timing and the evidence that a comparison leaves behind."""
