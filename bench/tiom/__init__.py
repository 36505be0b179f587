"""The task-I/O meter: computation and I/O in tasks, over compute time and block size."""
