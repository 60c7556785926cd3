"""`python -m anabranch` is the command `anabranch`."""

from anabranch.cli.commands import main

main()
