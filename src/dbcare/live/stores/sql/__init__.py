"""Studies in a database.

store        `SqlStore`; `session`, a transaction on one study
engine       connections, set up so that nothing acknowledged is lost
sqlite_file  an SQLite file, and how it is opened, locked and watched
tables       the tables, and whether a database has them
errors       errors of databases, as one sentence that says what to do
"""
