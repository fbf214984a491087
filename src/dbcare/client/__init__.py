"""Studies on a server, used as if they were here.

connect     `connect`, and the `Client` it gives: studies by name, as `live.create` has them
study       `RemoteStudy`, a `Study` whose methods ask the server
transport   requests: sent again while that is safe, never for ever
answers     what a server said, as the library's own results and exceptions
"""
