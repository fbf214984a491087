"""Studies on a server, used as if they were local.

connect        `connect`, and the `Client` it returns: studies by name, as `studies.api` has them
remote_study   `RemoteStudy`, a `Study` whose methods call the server
transport      requests: retried while that is safe, but not forever
responses      what a server responds, as the library's own results and exceptions
"""
