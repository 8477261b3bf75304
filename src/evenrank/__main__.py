"""``python -m evenrank``, and the command ``evenrank``."""

from evenrank.cli import main

if __name__ == "__main__":
    main()
