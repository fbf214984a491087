"""Studies in a database.

store       `SqlStore`, and its statements
engine      connections, set up so that nothing acknowledged is lost
tables      the tables, and whether a database has them
errors      errors of databases, as one sentence that says what to do
"""
