"""`python -m riesz` is the command `riesz`."""

from .command.command_line import main

if __name__ == "__main__":
    raise SystemExit(main())
