"""Aligns files of reads to two reference genomes, and writes results of two sizes."""
