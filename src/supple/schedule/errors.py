"""What a primitive raises when it would change the meaning."""

from __future__ import annotations

from supple.base.errors import SuppleError


class ScheduleError(SuppleError, ValueError):
    """A primitive cannot be applied; the message says to what and why."""
