"""Studies in SQLite and PostgreSQL: tables, sessions, and connections that survive failures."""
