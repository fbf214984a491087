"""How good decisions are, and whether what studies say is true."""
