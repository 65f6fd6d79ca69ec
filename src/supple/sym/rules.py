"""The rewrite rules: what a term looks like, what it becomes, and when.

Values are mathematical integers; ``x // 0`` and ``x % 0`` are 0, so a rule that cancels a divisor asks that it is not
zero. The first rule that fits is taken. See `supple.sym.pattern` for the notation.
"""

from __future__ import annotations

from supple.sym.pattern import Rule, Table

ADD = (
    Rule("x + 0", "x"),
    Rule("(c1 - x) + c2", "(c1 + c2) - x"),
    Rule("(x + c1) + c2", "x + (c1 + c2)"),
    Rule("c1 + x", "x + c1", ordered=True),
    Rule("x + x", "x * 2"),
    Rule("(x - y) + y", "x"),
    Rule("(c1 - x) + y", "(y - x) + c1"),
    Rule("(x - y) + (y - z)", "x - z"),
    Rule("(0 - x) + y", "y - x"),
    Rule("min(x, y) + max(x, y)", "x + y"),
    Rule("(x // y) * y + x % y", "x", "nonzero(y)"),
    Rule("((x // y) * y + z) + x % y", "z + x", "nonzero(y)"),
    Rule("(x // y + z) * y + x % y", "x + z * y", "nonzero(y)"),
    Rule("x * c1 + x * c2", "x * (c1 + c2)"),
    Rule("x * c1 + x", "x * (c1 + 1)"),
    Rule("x * -1 + y", "y - x"),
    Rule("x * y + x * z", "(y + z) * x"),
    Rule("x * y + x", "(y + 1) * x", "symbolic(x)"),
    Rule("x + (y + c1)", "(x + y) + c1", ordered=True),
    Rule("(x + c1) + y", "(x + y) + c1", ordered=True),
    Rule("select(b, x, y) + select(b, z, w)", "select(b, x + z, y + w)"),
)

SUB = (
    Rule("x - x", "0"),
    Rule("x - c1", "x + (0 - c1)"),
    Rule("0 - x * c1", "x * (0 - c1)"),
    Rule("0 - (x - y)", "y - x"),
    Rule("c1 - (x + c2)", "(c1 - c2) - x"),
    Rule("c1 - (c2 - x)", "x + (c1 - c2)"),
    Rule("(x + y) - y", "x"),
    Rule("x - (x + y)", "0 - y"),
    Rule("(x - y) - x", "0 - y"),
    Rule("x - (x - y)", "y"),
    Rule("(x + y) - (x + z)", "y - z"),
    Rule("(x - y) - (x - z)", "z - y"),
    Rule("(x - y) - (z - y)", "x - z"),
    Rule("x - (c1 - y)", "(x + y) + (0 - c1)"),
    Rule("(x + c1) - y", "(x - y) + c1"),
    Rule("x - (y + c1)", "(x - y) + (0 - c1)"),
    Rule("x * c1 - x * c2", "x * (c1 - c2)"),
    Rule("x * c1 - x", "x * (c1 - 1)"),
    Rule("x - x * c1", "x * (1 - c1)"),
    Rule("x - y * c1", "x + y * (0 - c1)", "c1 < 0"),
    Rule("x * y - x * z", "(y - z) * x"),
    Rule("x * y - x", "(y + -1) * x", "symbolic(x)"),
    Rule("x - (x // y) * y", "x % y", "nonzero(y)"),
    Rule("(x // y) * y - x", "0 - x % y", "nonzero(y)"),
    Rule("min(x, y) - min(x, y)", "0"),
    Rule("max(x, y) - max(x, y)", "0"),
    Rule("min(x, y) - x", "min(y - x, 0)"),
    Rule("max(x, y) - x", "max(y - x, 0)"),
    Rule("x - min(x, y)", "max(x - y, 0)"),
    Rule("x - max(x, y)", "min(x - y, 0)"),
    Rule("select(b, x, y) - select(b, z, w)", "select(b, x - z, y - w)"),
    Rule("select(b, x, y) - x", "select(b, 0, y - x)"),
    Rule("select(b, x, y) - y", "select(b, x - y, 0)"),
    Rule("x - (y - z)", "(x + z) - y"),
)

MUL = (
    Rule("x * 0", "0"),
    Rule("x * 1", "x"),
    Rule("c1 * x", "x * c1", ordered=True),
    Rule("(x * c1) * c2", "x * (c1 * c2)"),
    Rule("(x + c1) * c2", "x * c2 + c1 * c2"),
    Rule("(c1 - x) * c2", "c1 * c2 - x * c2"),
    Rule("(x - y) * c1", "(y - x) * (0 - c1)", "c1 < 0"),
    Rule("min(x, y) * max(x, y)", "x * y"),
    Rule("(x * c1) * y", "(x * y) * c1"),
)

FLOORDIV = (
    Rule("0 // x", "0"),
    Rule("x // 1", "x"),
    Rule("x // -1", "0 - x"),
    Rule("x // x", "1", "nonzero(x)"),
    Rule("(x * y) // y", "x", "nonzero(y)"),
    Rule("(x * -1) // c1", "x // (0 - c1)", "c1 > 0"),
    Rule("(x // c1) // c2", "x // (c1 * c2)", "c1 != 0 and c2 > 0"),
    Rule("(x // c1 + c3) // c2", "(x + c1 * c3) // (c1 * c2)", "c1 > 0 and c2 > 0"),
    Rule("(x * c1) // c2", "x * (c1 // c2)", "c2 != 0 and c1 % c2 == 0"),
    Rule("(x * c1) // c2", "x // (c2 // c1)", "c1 > 0 and c2 > 0 and c2 % c1 == 0"),
    Rule("(x * c1) // c2", "(x * (c1 // gcd(c1, c2))) // (c2 // gcd(c1, c2))", "c2 > 0 and gcd(c1, c2) > 1"),
    Rule("(x * c1 + y) // c2", "x * (c1 // c2) + y // c2", "c2 > 0 and c1 % c2 == 0"),
    Rule("(x * c1 - y) // c2", "x * (c1 // c2) + (0 - y) // c2", "c2 > 0 and c1 % c2 == 0"),
    Rule("(y - x * c1) // c2", "y // c2 - x * (c1 // c2)", "c2 > 0 and c1 % c2 == 0"),
    Rule("((x * c1 + y) + z) // c2", "x * (c1 // c2) + (y + z) // c2", "c2 > 0 and c1 % c2 == 0"),
    Rule("((x * c1 - y) + z) // c2", "x * (c1 // c2) + (z - y) // c2", "c2 > 0 and c1 % c2 == 0"),
    Rule("((y - x * c1) + z) // c2", "(y + z) // c2 - x * (c1 // c2)", "c2 > 0 and c1 % c2 == 0"),
    Rule("(x + c1) // c2", "x // c2 + c1 // c2", "c2 > 0 and c1 % c2 == 0"),
    Rule("(x + y) // y", "x // y + 1", "nonzero(y)"),
    Rule("(x * y + z) // y", "x + z // y", "nonzero(y)"),
    Rule("(x * z) // (y * z)", "x // y", "nonzero(z)"),
    Rule("(x // y) // z", "x // (y * z)", "positive(y) and positive(z)"),
)

FLOORMOD = (
    Rule("0 % x", "0"),
    Rule("x % 1", "0"),
    Rule("x % -1", "0"),
    Rule("x % x", "0"),
    Rule("(x * y) % y", "0"),
    Rule("(x * c1) % c2", "0", "c2 != 0 and c1 % c2 == 0"),
    Rule("(x * c1) % c2", "(x % (c2 // c1)) * c1", "c1 > 0 and c2 > 0 and c2 % c1 == 0"),
    Rule("(x * c1) % c2", "(x * (c1 % c2)) % c2", "c2 > 0 and (c1 < 0 - c2 or c1 >= c2)"),
    Rule("(x * c1 + y) % c2", "y % c2", "c2 > 0 and c1 % c2 == 0"),
    Rule("(x * c1 - y) % c2", "(0 - y) % c2", "c2 > 0 and c1 % c2 == 0"),
    Rule("(y - x * c1) % c2", "y % c2", "c2 > 0 and c1 % c2 == 0"),
    Rule("((x * c1 + y) + z) % c2", "(y + z) % c2", "c2 > 0 and c1 % c2 == 0"),
    Rule("((x * c1 - y) + z) % c2", "(z - y) % c2", "c2 > 0 and c1 % c2 == 0"),
    Rule("((y - x * c1) + z) % c2", "(y + z) % c2", "c2 > 0 and c1 % c2 == 0"),
    Rule("(x + c1) % c2", "(x + c1 % c2) % c2", "c2 > 0 and (c1 < 0 or c1 >= c2)"),
    Rule("(c1 - x) % c2", "(c1 % c2 - x) % c2", "c2 > 0 and (c1 < 0 or c1 >= c2)"),
    Rule("(x * c1 + y) % c2", "(x * (c1 % c2) + y) % c2", "c2 > 0 and (c1 < 0 or c1 >= c2)"),
    Rule("(x % c1) % c2", "x % c2", "c2 > 0 and c1 % c2 == 0"),
    Rule("(x % c1 + y) % c2", "(x + y) % c2", "c2 > 0 and c1 % c2 == 0"),
    Rule("(x + y) % y", "x % y"),
    Rule("(x - y) % y", "x % y"),
    Rule("(x * y + z) % y", "z % y"),
    Rule("(x % y) % y", "x % y"),
)

TRUNC = (
    Rule("tdiv(0, x)", "0"),
    Rule("tdiv(x, 1)", "x"),
    Rule("tdiv(x, -1)", "0 - x"),
    Rule("tdiv(x, x)", "1", "nonzero(x)"),
    Rule("tdiv(x * y, y)", "x", "nonzero(y)"),
    Rule("tdiv(tdiv(x, c1), c2)", "tdiv(x, c1 * c2)", "c1 > 0 and c2 > 0"),
    Rule("tdiv(x * c1, c2)", "x * (c1 // c2)", "c2 != 0 and c1 % c2 == 0"),
    Rule("tdiv(x * -1, c1)", "tdiv(x, 0 - c1)", "c1 > 0"),
    Rule("tmod(x * -1, c1)", "tmod(x, c1) * -1", "c1 > 0"),
    Rule("tmod(x * c1 + c2, c3)", "0", "c3 != 0 and c1 % c3 == 0 and c2 % c3 == 0"),
    Rule("tdiv(x * c1, c2)", "tdiv(x * (c1 // gcd(c1, c2)), c2 // gcd(c1, c2))", "c2 > 0 and gcd(c1, c2) > 1"),
    Rule("tmod(x, c1)", "tmod(x, 0 - c1)", "c1 < 0"),
    Rule("tdiv(x + c1, c2)", "tdiv(x, c2) + c1 // c2", "c2 > 0 and c1 % c2 == 0 and nonneg(x) and c1 > 0"),
    Rule("tmod(0, x)", "0"),
    Rule("tmod(x, 1)", "0"),
    Rule("tmod(x, -1)", "0"),
    Rule("tmod(x, x)", "0"),
    Rule("tmod(x * y, y)", "0"),
    Rule("tmod(x * c1, c2)", "0", "c2 != 0 and c1 % c2 == 0"),
    Rule("tmod(x * c1, c2)", "tmod(x * (c1 // gcd(c1, c2)), c2 // gcd(c1, c2)) * gcd(c1, c2)",
         "c2 > 0 and gcd(c1, c2) > 1"),
    Rule("tmod(tmod(x, c1), c2)", "tmod(x, c2)", "c1 > 0 and c2 > 0 and c1 % c2 == 0"),
    Rule("tdiv(x, y) * y + tmod(x, y)", "x", "nonzero(y)"),
    Rule("x - tdiv(x, y) * y", "tmod(x, y)", "nonzero(y)"),
)  # fmt: skip


def _extrema(low: str, high: str, less: str) -> tuple[Rule, ...]:
    """The rules of ``min``; those of ``max`` are the same with the two names, and the comparison, exchanged."""
    rules = (
        ("low(x, x)", "x", ""),
        ("low(low(x, c1), c2)", "low(x, low(c1, c2))", ""),
        ("low(high(x, c1), c2)", "c2", "c2 less c1"),
        ("low(low(x, y), x)", "low(x, y)", ""),
        ("low(low(x, y), low(x, z))", "low(low(y, z), x)", ""),
        ("low(high(x, y), x)", "x", ""),
        ("low(high(x, y), low(x, y))", "low(x, y)", ""),
        ("low(high(x, y), high(x, z))", "high(low(y, z), x)", ""),
        ("low(low(low(x, y), z), x)", "low(low(x, y), z)", ""),
        ("low(low(low(low(x, y), z), w), x)", "low(low(low(x, y), z), w)", ""),
        ("low(x + y, x)", "x + low(y, 0)", ""),
        ("low(x + y, x + z)", "low(y, z) + x", ""),
        ("low(x - y, x - z)", "x - high(y, z)", ""),
        ("low(x - z, y - z)", "low(x, y) - z", ""),
        ("low(x - y, x)", "x - high(y, 0)", ""),
        ("low(c1 - x, c2)", "c1 - high(x, c1 - c2)", ""),
        ("low(x + c1, c2)", "low(x, c2 - c1) + c1", ""),
        ("low(x + c1, y + c2)", "low(x, y + (c2 - c1)) + c1", "c1 < c2"),
        ("low(x * c1, y * c1)", "low(x, y) * c1", "c1 > 0"),
        ("low(x * c1, y * c1)", "high(x, y) * c1", "c1 < 0"),
        (
            "low(x * c1, y * c2)",
            "low(x * (c1 // gcd(c1, c2)), y * (c2 // gcd(c1, c2))) * gcd(c1, c2)",
            "gcd(c1, c2) > 1",
        ),
        ("low(x * c1, c2)", "low(x, c2 // c1) * c1", "c1 > 0 and c2 % c1 == 0"),
        ("low(x * c1, c2)", "high(x, c2 // c1) * c1", "c1 < 0 and c2 % c1 == 0"),
        ("low(x // c1, y // c1)", "low(x, y) // c1", "c1 > 0"),
        ("low(x // c1, y // c1)", "high(x, y) // c1", "c1 < 0"),
        ("low(select(b, x, y), select(b, z, w))", "select(b, low(x, z), low(y, w))", ""),
        ("low(low(x, c1), y)", "low(low(x, y), c1)", ""),
    )

    def spelled(text: str) -> str:
        names = {"low": low, "high": high, "less": less}
        for name, spelling in names.items():
            text = text.replace(f"{name}(", f"{spelling}(").replace(f" {name} ", f" {spelling} ")
        return text

    ordered = Rule(f"{low}(c1, x)", f"{low}(x, c1)", ordered=True)
    return (ordered, *(Rule(spelled(p), spelled(r), spelled(w)) for p, r, w in rules))


MIN, MAX = _extrema("min", "max", "<="), _extrema("max", "min", ">=")


def _both(*rules: Rule) -> tuple[Rule, ...]:
    """Rules that hold for ``<`` and ``<=`` alike (written with ``<``)."""
    return tuple(
        Rule(r.pattern.replace("<", op), r.result.replace("<", op), r.when, r.ordered)
        for op in ("<", "<=")
        for r in rules
    )


COMPARE = (
    *_both(
        Rule("x + y < x + z", "y < z"),
        Rule("x - y < x - z", "z < y"),
        Rule("x - y < z - y", "x < z"),
        Rule("x < x + y", "0 < y"),
        Rule("x + y < x", "y < 0"),
        Rule("x < x - y", "y < 0"),
        Rule("x - y < x", "0 < y"),
        Rule("x + c1 < c2", "x < c2 - c1"),
        Rule("c1 < x + c2", "c1 - c2 < x"),
        Rule("c1 - x < c2", "c1 - c2 < x"),
        Rule("c1 < c2 - x", "x < c2 - c1"),
        Rule("x + c1 < y + c2", "x + (c1 - c2) < y", "c1 > c2"),
        Rule("x + c1 < y + c2", "x < y + (c2 - c1)", "c1 <= c2"),
        Rule("x + c1 < y", "x < y + (0 - c1)", "c1 < 0"),
        Rule("x < y + c1", "x + (0 - c1) < y", "c1 < 0"),
        Rule("c1 - x < y", "c1 < y + x"),
        Rule("y < c1 - x", "y + x < c1"),
        Rule("x - y < 0", "x < y"),
        Rule("0 < x - y", "y < x"),
        Rule("x * c1 < y * c1", "x < y", "c1 > 0"),
        Rule("x * c1 < y * c1", "y < x", "c1 < 0"),
        Rule("x * y < z * y", "x < z", "positive(y)"),
        Rule("x < x * c1", "0 < x", "c1 > 1"),
        Rule("x < x * c1", "x < 0", "c1 < 1"),
        Rule("x * c1 < x", "x < 0", "c1 > 1"),
        Rule("x * c1 < x", "0 < x", "c1 < 1"),
    ),
    Rule("x < y + 1", "x <= y"),
    Rule("x + 1 <= y", "x < y"),
    Rule("x * c1 < c2", "x < 0 - (0 - c2) // c1", "c1 > 0"),
    Rule("x * c1 < c2", "(0 - c2) // (0 - c1) < x", "c1 < 0"),
    Rule("c1 < x * c2", "c1 // c2 < x", "c2 > 0"),
    Rule("c1 < x * c2", "x < 0 - c1 // (0 - c2)", "c2 < 0"),
    Rule("x * c1 <= c2", "x <= c2 // c1", "c1 > 0"),
    Rule("x * c1 <= c2", "0 - c2 // (0 - c1) <= x", "c1 < 0"),
    Rule("c1 <= x * c2", "0 - (0 - c1) // c2 <= x", "c2 > 0"),
    Rule("c1 <= x * c2", "x <= (0 - c1) // (0 - c2)", "c2 < 0"),
    Rule("x // c1 < c2", "x < c1 * c2", "c1 > 0"),
    Rule("x // c1 <= c2", "x < c1 * (c2 + 1)", "c1 > 0"),
    Rule("c1 < x // c2", "c2 * (c1 + 1) <= x", "c2 > 0"),
    Rule("c1 <= x // c2", "c2 * c1 <= x", "c2 > 0"),
    Rule("x * c1 + c3 < y * c2", "x * (c1 // gcd(c1, c2, c3)) + c3 // gcd(c1, c2, c3) < y * (c2 // gcd(c1, c2, c3))",
         "gcd(c1, c2, c3) > 1"),
    Rule("x * c1 < y * c2 + c3", "x * (c1 // gcd(c1, c2, c3)) < y * (c2 // gcd(c1, c2, c3)) + c3 // gcd(c1, c2, c3)",
         "gcd(c1, c2, c3) > 1"),
    Rule("x * c1 < y * c2", "x * (c1 // gcd(c1, c2)) < y * (c2 // gcd(c1, c2))", "gcd(c1, c2) > 1"),
    Rule("min(x, y) <= x", "true"),
    Rule("x <= max(x, y)", "true"),
    Rule("x < min(x, y)", "false"),
    Rule("max(x, y) < x", "false"),
    Rule("min(x, y) < x", "y < x"),
    Rule("x < max(x, y)", "x < y"),
    Rule("x <= min(x, y)", "x <= y"),
    Rule("max(x, y) <= x", "y <= x"),
    Rule("min(x, c1) < c2", "true", "c1 < c2"),
    Rule("min(x, c1) < c2", "x < c2", "c1 >= c2"),
    Rule("max(x, c1) < c2", "x < c2", "c1 < c2"),
    Rule("max(x, c1) < c2", "false", "c1 >= c2"),
    Rule("c1 < min(x, c2)", "c1 < x", "c1 < c2"),
    Rule("c1 < min(x, c2)", "false", "c1 >= c2"),
    Rule("c1 < max(x, c2)", "true", "c1 < c2"),
    Rule("c1 < max(x, c2)", "c1 < x", "c1 >= c2"),
    Rule("min(x, c1) <= c2", "true", "c1 <= c2"),
    Rule("min(x, c1) <= c2", "x <= c2", "c1 > c2"),
    Rule("max(x, c1) <= c2", "x <= c2", "c1 <= c2"),
    Rule("max(x, c1) <= c2", "false", "c1 > c2"),
    Rule("c1 <= min(x, c2)", "c1 <= x", "c1 <= c2"),
    Rule("c1 <= min(x, c2)", "false", "c1 > c2"),
    Rule("c1 <= max(x, c2)", "true", "c1 <= c2"),
    Rule("c1 <= max(x, c2)", "c1 <= x", "c1 > c2"),
)  # fmt: skip

EQUAL = (
    Rule("x == x", "true"),
    Rule("c1 == x", "x == c1", ordered=True),
    Rule("x + c1 == c2", "x == c2 - c1"),
    Rule("c1 - x == c2", "x == c1 - c2"),
    Rule("x * c1 == c2", "x == c2 // c1", "c1 != 0 and c2 % c1 == 0"),
    Rule("x * c1 == c2", "false", "c1 != 0 and c2 % c1 != 0"),
    Rule("x - y == 0", "x == y"),
    Rule("min(x, y) == y", "y <= x"),
    Rule("max(x, y) == y", "x <= y"),
    Rule("x // c1 == 0", "x < c1", "c1 > 0 and nonneg(x)"),
    Rule("x * y == 0", "or_(x == 0, y == 0)"),
    Rule("x + y == x + z", "y == z"),
    Rule("x - y == x - z", "y == z"),
    Rule("x - y == z - y", "x == z"),
    Rule("x + y == x", "y == 0"),
    Rule("x - y == x", "y == 0"),
    Rule("x * c1 == y * c1", "x == y", "c1 != 0"),
    Rule("x + c1 == y + c2", "x + (c1 - c2) == y", "c1 > c2"),
)

LOGIC = (
    Rule("and_(x, true)", "x"),
    Rule("and_(x, false)", "false"),
    Rule("and_(x, x)", "x"),
    Rule("and_(x, not_(x))", "false"),
    Rule("and_(and_(x, y), x)", "and_(x, y)"),
    Rule("and_(x < y, x != y)", "x < y"),
    Rule("and_(x <= y, y <= x)", "x == y"),
    Rule("and_(x <= y, x != y)", "x < y"),
    Rule("or_(x, false)", "x"),
    Rule("or_(x, true)", "true"),
    Rule("or_(x, x)", "x"),
    Rule("or_(x, not_(x))", "true"),
    Rule("or_(or_(x, y), x)", "or_(x, y)"),
    Rule("or_(x < y, y < x)", "x != y", "whole(x)"),
    Rule("or_(x < y, x == y)", "x <= y"),
    Rule("or_(and_(x, y), x)", "x"),
    Rule("and_(or_(x, y), x)", "x"),
    Rule("not_(not_(x))", "x"),
    Rule("not_(x < y)", "y <= x", "whole(x)"),
    Rule("not_(x <= y)", "y < x", "whole(x)"),
    Rule("not_(x == y)", "x != y"),
    Rule("not_(x != y)", "x == y"),
    Rule("not_(and_(x, y))", "or_(not_(x), not_(y))"),
    Rule("not_(or_(x, y))", "and_(not_(x), not_(y))"),
)

SELECT = (
    Rule("select(true, x, y)", "x"),
    Rule("select(false, x, y)", "y"),
    Rule("select(b, x, x)", "x"),
    Rule("select(not_(b), x, y)", "select(b, y, x)"),
    Rule("select(b, select(b, x, y), z)", "select(b, x, z)"),
    Rule("select(b, x, select(b, y, z))", "select(b, x, z)"),
)

SELECT_TRUTH = (
    Rule("select(b, true, false)", "b"),
    Rule("select(b, false, true)", "not_(b)"),
)

INTEGER_RULES = Table((*ADD, *SUB, *MUL, *FLOORDIV, *FLOORMOD, *TRUNC, *MIN, *MAX, *COMPARE, *EQUAL, *SELECT))
TRUTH_RULES = Table((*LOGIC, *SELECT, *SELECT_TRUTH))
"""Rules of bools. Their operands may compare floats, of which NaN is in no order: such rules ask ``whole``."""

ANY_RULES = Table(
    (
        *SELECT,
        Rule("min(x, x)", "x"),
        Rule("max(x, x)", "x"),
    )
)
"""What holds for floats, NaN included, and for vectors."""
