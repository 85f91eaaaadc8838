"""What is shown of what is kept, in the shapes of the seeds."""
