"""Where studies are kept.

base          what every store must do; `dbcare.testing.StoreSuite` checks it
group_commit  one commit for everything that is waiting
memory        in the memory of this process
sql           in a database: SQLite or PostgreSQL
open          the store at an address
"""
