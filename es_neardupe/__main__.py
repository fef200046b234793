"""``python -m es_neardupe``, the same as ``es-neardupe``."""

from es_neardupe.cli.app import main

if __name__ == "__main__":
    main()
