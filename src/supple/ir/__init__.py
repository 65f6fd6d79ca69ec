"""Node kinds of both levels. Importing the package installs the printer behind ``str(node)``."""

from supple.ir import printer as printer
