"""Real applications on real data; see README.md."""
