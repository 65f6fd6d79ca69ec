"""``relax.block_builder``. Only re-exports."""

from supple.build.block_builder import (
    BlockBuilder,
)

__all__ = [
    "BlockBuilder",
]
