"""What should a study try next? The policy at work, with or without blocks."""
