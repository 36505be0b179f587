"""The HMMER application: a fragmented profile search whose every pair is checkpointed."""
