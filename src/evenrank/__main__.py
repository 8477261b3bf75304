"""``python -m evenrank``, and the command ``evenrank``."""

from evenrank import _command


def main() -> None:
    """Runs the command line: see :func:`evenrank.cli.main`."""
    # Its imports take tenths of a second.
    _command.end_at_signals()
    from evenrank.cli import main as run

    run()


if __name__ == "__main__":
    main()
