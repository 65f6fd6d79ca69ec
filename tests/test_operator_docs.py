"""The operator reference in the docs is what the registry says."""

from __future__ import annotations

from pathlib import Path

from supple.tools.operator_docs import reference

PAGE = Path(__file__).parent.parent / "docs" / "operators.md"


def test_the_reference_is_current() -> None:
    assert PAGE.read_text() == reference(), "run: python -m supple.tools.operator_docs > docs/operators.md"
