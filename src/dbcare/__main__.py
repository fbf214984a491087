"""`python -m dbcare` is the `dbcare` command."""

from dbcare.cli import main

main()
