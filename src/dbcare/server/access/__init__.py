"""Who may do what: keys for programs, sessions for browsers, and the gate that asks for them."""
