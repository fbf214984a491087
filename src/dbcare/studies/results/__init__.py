"""What is known about a study? Numbers with their intervals, doubts about them, and both in words."""
