"""Studies on a server, used as if they were local."""
