"""What the applications share: how they are run in each mode, timed and reported."""
