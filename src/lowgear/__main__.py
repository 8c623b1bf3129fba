"""`python -m lowgear` is the command line."""

from lowgear.commands.cli import main

main()
