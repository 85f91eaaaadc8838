"""The limitation periods, place by place, and how a last day is found."""
