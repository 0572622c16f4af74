"""`python -m arena` is the `arena` command."""

from arena.cli.main import main

if __name__ == "__main__":
    main()
