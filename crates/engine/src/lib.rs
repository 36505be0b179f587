//! Does file operations: io_uring or threads, throttled or faulty, behind one trait.
