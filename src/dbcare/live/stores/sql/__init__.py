"""Studies in a database.

store       `SqlStore`, and the statements it makes
engine      connections, set up so that what was acknowledged stays
tables      the tables, and whether a database has them
errors      what a database complains about, in one sentence with what to do
"""
