"""Where studies are kept: in memory, in a database, or in a store of your own."""
