"""The planner: before any data, what experimenting would cost and bring, against the gap between the arms."""
