"""Tests that need the built package: python/ (pytest), journey/ (whole programs)."""
