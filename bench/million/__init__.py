"""Does memory grow with tasks that are over: a million of them through one session."""
