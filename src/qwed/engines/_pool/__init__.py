"""Parts of the engine worker pool: queues, messages and processes. `pool.py` is the public interface."""
