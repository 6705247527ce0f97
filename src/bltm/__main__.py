"""``python -m bltm``: the command line."""

from bltm.cli import main

if __name__ == "__main__":
    main()
