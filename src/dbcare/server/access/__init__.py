"""Who may do what? Keys for programs, sessions for browsers, and the gate in front of every route."""
