# SPDX-License-Identifier: MIT
# canary_plot.py TITLE XLABEL YLABEL: a line chart as SVG on standard output, from lines of SERIES, x, y, separated by tabs, on
# standard input. The x axis is logarithmic; the y axis too, where all y are above 0 and the largest is 20 times the
# smallest.
import math
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 400, 70, 150, 40, 50
COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#56b4e9', '#e69f00']

title, x_label, y_label = sys.argv[1:4]
series = {}
for line in sys.stdin:
    name, x, y = line.rstrip('\n').split('\t')
    series.setdefault(name, []).append((float(x), float(y)))
points = [p for ps in series.values() for p in ps]
if not points:
    sys.exit('canary_plot.py: nothing to draw')


def logarithmic(low, high):
    """Ticks at the powers of ten around the values, and where a value lies between them, from 0 to 1."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    last = max(last, first + 1)
    return [10.0 ** e for e in range(first, last + 1)], lambda v: (math.log10(v) - first) / (last - first)


def linear(low, high):
    low = min(low, 0.0)
    step = 10.0 ** math.floor(math.log10(max(high - low, 1e-9)))
    step *= next(f for f in (0.1, 0.2, 0.5, 1, 2) if (high - low) / (step * f) <= 8)
    first, last = math.floor(low / step), max(math.ceil(high / step), math.floor(low / step) + 1)
    return [i * step for i in range(first, last + 1)], lambda v: (v / step - first) / (last - first)


xs, ys = [p[0] for p in points], [p[1] for p in points]
x_ticks, x_at = logarithmic(min(xs), max(xs))
y_ticks, y_at = logarithmic(min(ys), max(ys)) if min(ys) > 0 and max(ys) > 20 * min(ys) else linear(min(ys), max(ys))


def across(x):
    return LEFT + x_at(x) * (WIDTH - LEFT - RIGHT)


def down(y):
    return HEIGHT - BOTTOM - y_at(y) * (HEIGHT - TOP - BOTTOM)


def text(x, y, words, anchor='middle', more=''):
    print(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>')


def stroke(x1, y1, x2, y2, colour='#ddd'):
    print(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>')


print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">')
print(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>')
text(WIDTH / 2, 22, title, more=' font-size="15"')
for x in x_ticks:
    stroke(across(x), TOP, across(x), HEIGHT - BOTTOM)
    text(across(x), HEIGHT - BOTTOM + 18, f'{x:,.0f}')
for y in y_ticks:
    stroke(LEFT, down(y), WIDTH - RIGHT, down(y))
    text(LEFT - 8, down(y) + 4, f'{y:g}', 'end')
stroke(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, '#333')
stroke(LEFT, TOP, LEFT, HEIGHT - BOTTOM, '#333')
text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x_label)
text(0, 0, y_label, more=f' transform="translate(18 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)"')
for i, (name, ps) in enumerate(series.items()):
    colour = COLOURS[i % len(COLOURS)]
    ps.sort()
    path = ' '.join(f'{across(x):.1f},{down(y):.1f}' for x, y in ps)
    print(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
    for x, y in ps:
        print(f'<circle cx="{across(x):.1f}" cy="{down(y):.1f}" r="3" fill="{colour}"/>')
    stroke(WIDTH - RIGHT + 12, TOP + 14 + 18 * i, WIDTH - RIGHT + 32, TOP + 14 + 18 * i, colour)
    text(WIDTH - RIGHT + 38, TOP + 18 + 18 * i, name, 'start')
print('</svg>')
