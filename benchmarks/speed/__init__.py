"""Time, memory, and what the service withstands."""
