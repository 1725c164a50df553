"""A line chart as SVG: both axes logarithmic, one line a series. Standard library only."""

import html
import math

WIDTH, HEIGHT = 800, 440
LEFT, RIGHT, TOP, BOTTOM = 56, 270, 40, 48
COLORS = ["#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#57606a"]


def ticks(low, high):
    """1, 2, 5, 10, ... from the one at or below `low` to the one at or above `high`."""
    steps = [m * 10.0 ** e for e in range(-4, 7) for m in (1, 2, 5)]
    first = max((s for s in steps if s <= low), default=steps[0])
    last = min((s for s in steps if s >= high), default=steps[-1])
    return [s for s in steps if first <= s <= last]


class Axes:
    def __init__(self, points):
        self.xs = sorted({x for x, _ in points})
        self.ys = ticks(min(y for _, y in points), max(y for _, y in points))

    @staticmethod
    def place(value, low, high, begin, end):
        if low == high:
            return (begin + end) / 2
        share = (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))
        return begin + share * (end - begin)

    def x(self, value):
        return self.place(value, self.xs[0], self.xs[-1], LEFT + 16, WIDTH - RIGHT - 16)

    def y(self, value):
        return self.place(value, self.ys[0], self.ys[-1], HEIGHT - BOTTOM, TOP)


def text(x, y, words, anchor="start", size=12):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">'
            f"{html.escape(str(words))}</text>")


def line(x1, y1, x2, y2, style):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'


def grid(axes, x_label):
    parts = []
    for value in axes.ys:
        parts.append(line(LEFT, axes.y(value), WIDTH - RIGHT, axes.y(value), 'stroke="#d0d7de"'))
        parts.append(text(LEFT - 6, axes.y(value) + 4, f"{value:g}", "end"))
    for value in axes.xs:
        parts.append(text(axes.x(value), HEIGHT - BOTTOM + 18, f"{value:g}", "middle"))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_label, "middle"))
    return parts


def svg(title, x_label, series):
    """`series`: {name: {"group": which share a colour, "dashed": or not, "points": [(x, y), ...]}},
    all above 0."""
    axes = Axes([point for entry in series.values() for point in entry["points"]])
    parts = [text(LEFT, 22, title, size=15), *grid(axes, x_label)]
    groups = list(dict.fromkeys(entry["group"] for entry in series.values()))
    for i, (name, entry) in enumerate(series.items()):
        color = COLORS[groups.index(entry["group"]) % len(COLORS)]
        dash = ' stroke-dasharray="6 4"' if entry["dashed"] else ""
        points = [(axes.x(x), axes.y(y)) for x, y in sorted(entry["points"])]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" '
                     f'stroke-width="2"{dash}/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points]
        row = TOP + 12 + 22 * i
        parts.append(line(WIDTH - RIGHT + 12, row - 4, WIDTH - RIGHT + 40, row - 4,
                          f'stroke="{color}" stroke-width="2"{dash}'))
        parts.append(text(WIDTH - RIGHT + 46, row, name))
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'font-family="sans-serif">\n<rect width="{WIDTH}" height="{HEIGHT}" '
            f'fill="white"/>\n{body}\n</svg>\n')
