"""Aligns the reads of a large compressed file, group by group, while it is being read."""
