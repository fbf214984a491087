"""Rules that pull all survivors equally often and drop arms: DBCARE, racing, and tests of two arms."""
