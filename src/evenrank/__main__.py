"""``python -m evenrank``: the command."""

from evenrank.cli import main

main()
