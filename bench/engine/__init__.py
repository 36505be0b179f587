"""What the engine makes of a disk: beside fio and plain threads, at the same depth."""
