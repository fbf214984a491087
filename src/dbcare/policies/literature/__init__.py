"""Rules that researchers compare with, most of them a part that samples and a part that stops."""
