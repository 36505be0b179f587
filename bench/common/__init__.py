"""What the benchmarks share: interleaved rounds, medians, tables, JSON rows, process trees."""
