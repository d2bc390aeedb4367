"""`python -m farthing`: the command line."""

from farthing.cli.main import run

if __name__ == "__main__":
    run()
