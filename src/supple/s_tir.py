"""Blocks of loop functions and their schedules under the names of Relax's module for them (``tvm.s_tir``)."""

from supple.ir.loop import MatchBufferRegion, SBlock, SBlockRealize
from supple.schedule.errors import ScheduleError
from supple.schedule.schedule import Schedule

__all__ = ["MatchBufferRegion", "SBlock", "SBlockRealize", "Schedule", "ScheduleError"]
