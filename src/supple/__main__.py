"""``python -m supple`` is the ``supple`` command."""

import sys

from supple.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
