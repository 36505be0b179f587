"""HDF5's own tests, and C tests of ours, against the connector: `make test-hdf5-own`."""
