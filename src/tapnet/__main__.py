"""`python -m tapnet` is the command `tapnet`."""

from tapnet.cli import main

main()
