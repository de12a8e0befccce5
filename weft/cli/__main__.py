"""`python -m weft.cli`: the command line where no script of that name is installed."""

import sys

from .main import main

if __name__ == "__main__":
    sys.exit(main())
