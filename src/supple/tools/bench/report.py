"""What the measurements say: a table, JSON, a plot."""

from __future__ import annotations

import importlib
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from supple.base.target import Target
from supple.tools.bench.measure import OURS, geometric_mean, least_seconds

Row = dict[str, Any]


def add(rows: list[Row], found: Row) -> None:
    """Add what a process measured. Where another process measured the same case beside other libraries, it is one row:
    each library's times beside Supple's of its own process (``ours``), and Supple's from where it was fastest."""
    ours = found["times"].get(OURS)
    for name, times in found["times"].items():
        if name != OURS and ours is not None:
            times["ours"] = ours["median"]
    same = (row for row in rows if (row["case"], row["threads"]) == (found["case"], found["threads"]))
    known = next(same, None)
    if known is None:
        rows.append(found)
        return
    before = known["times"].get(OURS)
    known["times"].update(found["times"])
    if before is not None and (ours is None or before["median"] < ours["median"]):
        known["times"][OURS] = before
    known["missing"].update(found["missing"])


def best_peer(row: Row) -> tuple[str, float, float] | None:
    """The fastest of the others beside Supple: its name, its median and its time over Supple's in the same process.
    None when nobody else, or not Supple, has a result."""
    others = [
        (name, t["median"], float(t["median"] / t["ours"]))
        for name, t in row["times"].items()
        if name != OURS and "ours" in t
    ]
    return min(others, key=lambda found: found[2], default=None)


def ratio(row: Row) -> float | None:
    """The best peer's time over Supple's: above 1 Supple is faster."""
    best = best_peer(row)
    return None if best is None else best[2]


def of_roofline(row: Row, peaks: dict[str, Any]) -> float | None:
    """The least possible time over Supple's."""
    if OURS not in row["times"]:
        return None
    return least_seconds(peaks, row["flops"], row["bytes"]) / float(row["times"][OURS]["median"])


def means(rows: Sequence[Row]) -> dict[str, float]:
    """The geometric mean of the ratios, by group and over all."""
    found: dict[str, list[float]] = {}
    for row in rows:
        value = ratio(row)
        if value is not None:
            found.setdefault(row["group"], []).append(value)
            found.setdefault("all", []).append(value)
    return {group: geometric_mean(values) for group, values in found.items()}


def machine() -> dict[str, str]:
    """Where the figures come from."""
    target = Target.parse("llvm")
    return {"system": platform.platform(), "python": platform.python_version(), "cpu": target.cpu}


def print_table(rows: Sequence[Row], peers: Sequence[str], peaks: dict[int, dict[str, Any]]) -> None:
    """The table on the terminal: medians in microseconds, the ratio to the best peer, the share of the roofline."""
    console = importlib.import_module("rich.console").Console(width=None if sys.stdout.isatty() else 160)
    table_class = importlib.import_module("rich.table").Table
    for threads in sorted({row["threads"] for row in rows}):
        own = [row for row in rows if row["threads"] == threads]
        table = table_class(title=f"{threads} thread{'s' if threads > 1 else ''}, medians in us")
        table.add_column("case")
        for name in (OURS, *peers):
            table.add_column(name, justify="right")
        table.add_column("best / ours", justify="right")
        table.add_column("of roofline", justify="right")
        for row in own:
            cells = [_microseconds(row, name) for name in (OURS, *peers)]
            value, share = ratio(row), of_roofline(row, peaks[threads])
            shown = "" if value is None else f"[{'green' if value >= 1 else 'red'}]{value:.2f}[/]"
            table.add_row(row["case"], *cells, shown, "" if share is None else f"{share:.0%}")
        console.print(table)
        for group, value in means(own).items():
            console.print(f"{group}: {value:.2f}")
        for row in own:
            for name, why in row["missing"].items():
                console.print(f"{row['case']}: {name}: {why}", style="dim", markup=False)


def _microseconds(row: Row, name: str) -> str:
    found = row["times"].get(name)
    return "-" if found is None else f"{found['median'] * 1e6:.1f}"


def markdown(whole: dict[str, Any]) -> str:
    """The figures of the JSON file as a page: means, then every case."""
    versions = ", ".join(f"{name} {version}" for name, version in whole["versions"].items())
    place = whole["machine"]
    lines = [f"Machine: {place['cpu']}, {place['system']}, Python {place['python']}; {versions}."]
    for threads in sorted({row["threads"] for row in whole["rows"]}):
        rows = [row for row in whole["rows"] if row["threads"] == threads]
        peaks = whole["roofline"][str(threads)]
        lines += ["", f"## {threads} thread{'s' if threads > 1 else ''}", ""]
        lines.append(
            f"Peak {peaks['flops'] / 1e9:.0f} GFLOP/s. Best other library's time over Supple's, geometric means:"
        )
        lines += ["", "| group | mean | least | cases |", "|---|---|---|---|"]
        for group, value in means(rows).items():
            own = [r for row in rows if group in ("all", row["group"]) and (r := ratio(row)) is not None]
            lines.append(f"| {group} | {value:.2f} | {min(own):.2f} | {len(own)} |")
        lines += ["", "| case | Supple, us | best other | us | ratio | of roofline |", "|---|---|---|---|---|---|"]
        for row in rows:
            best, share = best_peer(row), of_roofline(row, peaks)
            if best is None or share is None:
                lines.append(f"| {row['case']} | {_microseconds(row, OURS)} | - | - | - | - |")
                continue
            ours = row["times"][best[0]]["ours"]
            lines.append(
                f"| {row['case']} | {ours * 1e6:.1f} | {best[0]} | {best[1] * 1e6:.1f} | {best[2]:.2f} | {share:.0%} |"
            )
        for row in rows:
            lines += [f"- {row['case']}: no result of {name}: {why}" for name, why in row["missing"].items()]
    return "\n".join(lines) + "\n"


def plot(rows: Sequence[Row], file: Path) -> None:
    """Bars of the ratio to the best peer, one a case, to an image file."""
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    shown = [(row, value) for row in rows if (value := ratio(row)) is not None]
    figure, axes = pyplot.subplots(figsize=(8, max(3, 0.22 * len(shown))))
    names = [f"{row['case']} ({row['threads']})" for row, _ in shown]
    values = [value for _, value in shown]
    axes.barh(names, values, color=["tab:green" if v >= 1 else "tab:red" for v in values])
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.invert_yaxis()
    axes.set_xlabel("best peer's time / Supple's (threads in brackets)")
    figure.tight_layout()
    figure.savefig(file)
    pyplot.close(figure)
