"""``python -m evenrank``: the command line."""

from evenrank.cli import main

main()
