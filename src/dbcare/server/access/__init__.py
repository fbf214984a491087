"""Who may do what.

roles      what a key allows
keys       API keys, for programs; `sessions`, for browsers
records    where both are kept; `tables`, their tables in a database; `secrets`, how they are hashed
gate       checks them before every route
"""
