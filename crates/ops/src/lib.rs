//! File operations as plain values; who owns the buffer when.
