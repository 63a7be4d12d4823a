# SPDX-License-Identifier: MIT
# canary_plot.py TITLE XLABEL YLABEL: a line chart as SVG on standard output, from lines of SERIES, x, y,
# separated by tabs, on standard input. SERIES is "KIND, WAY", or one word: a colour for each kind, a dash for
# each way. The x axis is logarithmic; so is the y axis if the largest is 20 times the smallest, and if some y
# are not above 0 it is logarithmic beyond 1 and linear around 0. The colours are readable on light and dark
# backgrounds, and the background is that of the page.
import math
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 680, 400, 70, 180, 40, 50
COLOURS = ['#1f8fd6', '#e06c1f', '#17a077', '#c76ba0']
DASHES = ['', '6 4', '2 3']
STYLE = """<style>
text { fill: #222 } .grid { stroke: #ddd } .axis { stroke: #333 } .ground { fill: #fff }
@media (prefers-color-scheme: dark) {
text { fill: #ddd } .grid { stroke: #444 } .axis { stroke: #bbb } .ground { fill: #0d1117 }
}
</style>"""


def logarithmic(low, high):
    """Ticks at the powers of ten around the values, and where a value lies between them, from 0 to 1."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    last = max(last, first + 1)
    return [10.0 ** e for e in range(first, last + 1)], lambda v: (math.log10(v) - first) / (last - first)


def linear(low, high):
    low, high = min(low, 0.0), max(high, 0.0)
    step = 10.0 ** math.floor(math.log10(max(high - low, 1e-9)))
    step *= next(f for f in (0.1, 0.2, 0.5, 1, 2) if (high - low) / (step * f) <= 8)
    first, last = math.floor(low / step), max(math.ceil(high / step), math.floor(low / step) + 1)
    return [i * step for i in range(first, last + 1)], lambda v: (v / step - first) / (last - first)


def both_ways(low, high):
    """Linear between -1 and 1, and logarithmic beyond."""
    def bend(v):
        return v if abs(v) <= 1 else math.copysign(1 + math.log10(abs(v)), v)
    first, last = math.floor(bend(min(low, 0))), math.ceil(bend(max(high, 0)))
    ticks = [math.copysign(10.0 ** (abs(i) - 1), i) if i else 0.0 for i in range(first, last + 1)]
    return ticks, lambda v: (bend(v) - first) / (last - first)


def axis_of(low, high):
    if max(abs(low), abs(high)) > 20 and low <= 0:
        return both_ways(low, high)
    return logarithmic(low, high) if low > 0 and high > 20 * low else linear(low, high)


class Chart:
    def __init__(self, series):
        xs = [x for points in series.values() for x, _ in points]
        ys = [y for points in series.values() for _, y in points]
        self.x_ticks, self.x_at = logarithmic(min(xs), max(xs))
        self.y_ticks, self.y_at = axis_of(min(ys), max(ys))
        self.out = []

    def across(self, x):
        return LEFT + self.x_at(x) * (WIDTH - LEFT - RIGHT)

    def down(self, y):
        return HEIGHT - BOTTOM - self.y_at(y) * (HEIGHT - TOP - BOTTOM)

    def text(self, x, y, words, anchor='middle', more=''):
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>')

    def stroke(self, x1, y1, x2, y2, how):
        self.out.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {how}/>')

    def frame(self, title, x_label, y_label):
        self.out.append(f'<rect width="{WIDTH}" height="{HEIGHT}" class="ground"/>')
        self.text(WIDTH / 2, 22, title, more=' font-size="15"')
        for x in self.x_ticks:
            self.stroke(self.across(x), TOP, self.across(x), HEIGHT - BOTTOM, 'class="grid"')
            self.text(self.across(x), HEIGHT - BOTTOM + 18, f'{x:,.0f}')
        for y in self.y_ticks:
            self.stroke(LEFT, self.down(y), WIDTH - RIGHT, self.down(y),
                        'class="axis"' if y == 0 else 'class="grid"')
            self.text(LEFT - 8, self.down(y) + 4, f'{y:g}', 'end')
        self.stroke(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, 'class="axis"')
        self.stroke(LEFT, TOP, LEFT, HEIGHT - BOTTOM, 'class="axis"')
        self.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x_label)
        self.text(0, 0, y_label, more=f' transform="translate(18 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)"')

    def line(self, i, name, points, colour, dash):
        how = f'stroke="{colour}" stroke-width="2"' + (f' stroke-dasharray="{dash}"' if dash else '')
        path = ' '.join(f'{self.across(x):.1f},{self.down(y):.1f}' for x, y in sorted(points))
        self.out.append(f'<polyline points="{path}" fill="none" {how}/>')
        for x, y in points:
            self.out.append(
                f'<circle cx="{self.across(x):.1f}" cy="{self.down(y):.1f}" r="3" fill="{colour}"/>')
        beside = TOP + 14 + 18 * i
        self.stroke(WIDTH - RIGHT + 12, beside, WIDTH - RIGHT + 40, beside, how)
        self.text(WIDTH - RIGHT + 46, beside + 4, name, 'start')


def main():
    series = {}
    for line in sys.stdin:
        name, x, y = line.rstrip('\n').split('\t')
        series.setdefault(name, []).append((float(x), float(y)))
    if not series:
        sys.exit('canary_plot.py: nothing to draw')
    parts = {name: (name.split(', ', 1) + [''])[:2] for name in series}
    kinds = list(dict.fromkeys(p[0] for p in parts.values()))
    ways = list(dict.fromkeys(p[1] for p in parts.values()))
    chart = Chart(series)
    chart.frame(*sys.argv[1:4])
    for i, (name, points) in enumerate(series.items()):
        kind, way = parts[name]
        chart.line(i, name, points, COLOURS[kinds.index(kind) % len(COLOURS)],
                   DASHES[ways.index(way) % len(DASHES)])
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
          ' font-family="sans-serif" font-size="12">')
    print(STYLE, *chart.out, '</svg>', sep='\n')


main()
