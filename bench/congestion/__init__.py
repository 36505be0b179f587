"""How many I/O tasks at once: by hand, learned, adapted."""
