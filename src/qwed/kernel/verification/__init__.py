"""Engine endpoints without an agent (`/verify/*`) and their batches."""
