"""``relax.block_builder``. Only re-exports."""

from supple.build.block_builder import (
    BlockBuilder,
    gen_call_tir_inputs,
)

__all__ = [
    "BlockBuilder",
    "gen_call_tir_inputs",
]
