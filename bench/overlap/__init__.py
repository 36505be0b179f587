"""Is I/O hidden behind computation: total time over the least that this machine allows."""
