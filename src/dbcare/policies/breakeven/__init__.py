"""Our own rules, which stop once the expected loss of the choice is no more than what has been spent."""
