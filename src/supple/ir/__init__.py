"""Node kinds of both levels. Importing the package installs the printer behind ``str(node)``, pickle and deepcopy."""

from supple.ir import expr_operators as expr_operators
from supple.ir import printer as printer
from supple.ir import region as region
from supple.ir import serialize as serialize
