"""`python -m lowgear` is the command line."""

from lowgear.cli import main

main()
