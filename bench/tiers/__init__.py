"""Storage layers: what policies, flush and prefetch gain over the slow layer alone."""
