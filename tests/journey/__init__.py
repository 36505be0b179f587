"""Long runs of whole programs: see soak.py."""
