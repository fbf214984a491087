"""What every package uses and what knows nothing of arms: checks, numbers and times in words, files, and figures."""
