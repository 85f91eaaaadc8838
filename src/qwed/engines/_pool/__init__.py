"""Parts of the worker pool: queues, messages, and the processes themselves. `pool.py` is the door."""
