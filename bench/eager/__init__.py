"""What it gains, and what it costs, that consumers start before their producer has ended."""
