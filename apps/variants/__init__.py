"""A variant-discovery pipeline over many samples, with a checkpoint after each of five phases."""
