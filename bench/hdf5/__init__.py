"""How much of an HDF5 program's I/O is hidden, and what that costs where nothing can be."""
