"""What several benchmarks share, and the larger parts of single ones."""
