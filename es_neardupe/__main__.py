"""``python -m es_neardupe``, the same as ``es-neardupe``."""

import sys


def main() -> None:
    """Run the program. An interrupt while it is imported ends it as one during a command, but without a word."""
    try:
        from es_neardupe.cli.app import main as run
    except KeyboardInterrupt:
        sys.exit(130)  # `ExitCode.INTERRUPTED`, which was perhaps not imported
    run()


if __name__ == "__main__":
    main()
