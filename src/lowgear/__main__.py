"""The command line, as `lowgear` and `python -m lowgear`: it listens for Ctrl-C before anything else is imported."""

from lowgear.commands import ctrl_c


def main() -> None:
    """Run it."""
    ctrl_c.begin()
    from lowgear.commands.cli import main as run

    run()


if __name__ == "__main__":
    main()
