//! The interposed pread and pwrite family: calls inside tasks pause the task.
