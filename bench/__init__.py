"""Benchmarks: one folder a question; see README.md."""
