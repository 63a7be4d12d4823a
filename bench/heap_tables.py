# SPDX-License-Identifier: MIT
# heap_tables.py FOLDER SCALE: what bench/heap.sh measured, as tables on standard output and as drawings in
# FOLDER. Lines of KIND, NAME, VARIANT, VALUE come on standard input, separated by tabs, in the order in which
# they were measured.
import math
import os
import subprocess
import sys
from statistics import mean, median
from xml.sax.saxutils import escape

folder, scale = sys.argv[1], int(sys.argv[2])
kinds = {}
for line in sys.stdin:
    kind, name, variant, value = line.rstrip('\n').split('\t')
    kinds.setdefault(kind, {}).setdefault(name, {}).setdefault(variant, []).append(float(value))


VARIANTS = ['plain', 'eager', 'lazy', 'scudo', 'efence', 'asan']


def columns(rows):
    """The variants that there are."""
    return [v for v in VARIANTS if any(v in row for row in rows.values())]


def times(row, variant):
    """How many times the plain one it took: the median over runs that stood next to each other."""
    if variant not in row or 'plain' not in row:
        return None
    return median(v / p for v, p in zip(row[variant], row['plain']))


def spread(row, variant):
    ratios = sorted(v / p for v, p in zip(row[variant], row['plain']))
    return ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]


def table(kind, unit, factor):
    rows = kinds.get(kind, {})
    others = [v for v in columns(rows) if v != 'plain']
    print(f'| | plain, {unit} | ' + ' | '.join(others) + ' | runs |')
    print('| --- |' + ' --- |' * (len(others) + 2))
    for name, row in rows.items():
        cells = []
        for v in others:
            t = times(row, v)
            if t is None:
                cells.append('')
            elif math.isnan(t):
                cells.append('fails')
            elif len(row[v]) < 4:
                cells.append(f'{t:.2f}')
            else:
                low, high = spread(row, v)
                cells.append(f'{t:.2f} ({low:.2f} to {high:.2f})')
        print(f'| {name} | {median(row["plain"]) * factor:.3g} | ' + ' | '.join(cells) +
              f' | {len(row["plain"])} |')
    for label, summary in (('average', mean), ('median', median), ('worst', max)):
        cells = []
        for v in others:
            all_of_it = [t for t in (times(row, v) for row in rows.values())
                         if t is not None and not math.isnan(t)]
            cells.append(f'**{summary(all_of_it):.2f}**' if all_of_it else '')
        print(f'| {label} | | ' + ' | '.join(cells) + ' | |')
    print()


def bars(kind, title, file):
    """A bar for each program and variant; what is longer than the drawing ends with its number."""
    rows = kinds.get(kind, {})
    shown = [v for v in columns(rows) if v in ('eager', 'lazy', 'scudo')]
    colours = {'eager': '#0072b2', 'lazy': '#d55e00', 'scudo': '#999999'}
    values = [t for row in rows.values() for t in (times(row, v) for v in shown) if t]
    if not values:
        return
    most = min(max(max(values), 1.2) * 1.05, 4)
    left, width, bar, gap = 130, 640, 12, 10
    height = 70 + len(rows) * (bar * len(shown) + gap)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
           ' font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="{width / 2}" y="20" text-anchor="middle" font-size="15">{escape(title)}</text>']

    def across(t):
        return left + (min(t, most) / most) * (width - left - 50)

    for tick in range(int(most * 4) + 1):
        x = across(tick / 4)
        out.append(f'<line x1="{x:.1f}" y1="30" x2="{x:.1f}" y2="{height - 30}" '
                   f'stroke="{"#333" if tick == 4 else "#ddd"}"/>')
        if tick % 2 == 0:
            out.append(f'<text x="{x:.1f}" y="{height - 14}" text-anchor="middle">{tick / 4:g}</text>')
    y = 40
    for name, row in rows.items():
        out.append(f'<text x="{left - 8}" y="{y + bar * len(shown) / 2 + 4:.1f}" '
                   f'text-anchor="end">{escape(name)}</text>')
        for v in shown:
            t = times(row, v)
            if t:
                out.append(f'<rect x="{left}" y="{y}" width="{across(t) - left:.1f}" '
                           f'height="{bar - 1}" fill="{colours[v]}"/>')
                out.append(f'<text x="{across(t) + 4:.1f}" y="{y + bar - 2}" font-size="10">{t:.2f}</text>')
            y += bar
        y += gap
    for i, v in enumerate(shown):
        out.append(f'<text x="{left + 90 * i}" y="{height - 1}" fill="{colours[v]}" '
                   f'font-size="11">{v}</text>')
    out.append('</svg>')
    with open(os.path.join(folder, file), 'w') as f:
        f.write('\n'.join(out) + '\n')
    print(f'Drawn in `{file}`.\n')


def quantile(values, percent):
    values = sorted(values)
    return values[min(len(values) - 1, (len(values) * percent + 99) // 100 - 1)]


def memory():
    print('Bytes of memory that a block of so many bytes takes, and how many more than plain:\n')
    print('| size | plain | eager | lazy |\n| --- | --- | --- | --- |')
    for size, row in kinds['memory'].items():
        plain = median(row['plain'])
        cells = ' | '.join(f'{median(row[v]):.1f} (+{median(row[v]) - plain:.1f})' for v in ('eager', 'lazy'))
        print(f'| {size} | {plain:.1f} | {cells} |')
    print()


def cycle_of(blocks):
    """Half of the time the cycle was not longer, in milliseconds."""
    return kinds.get('cycle', {}).get(blocks, {}).get('p50', [None])[0]


def chance(exploit_ms, cycle_ms):
    return f'{min(1, exploit_ms / cycle_ms):.3g}' if cycle_ms else ''


def latency():
    exploits = [(0.001, '1 ms'), (0.01, '10 ms'), (0.1, '100 ms'), (1, '1 s')]
    print('From a write one byte behind a block of 32 bytes to its report, and from one look at all blocks',
          'to the next (the cycle), eager, in milliseconds, by time; and from the cycle at half of the time',
          '(T2) the chance that the paper gives for stopping an exploit which',
          'needs so long (T1): T1/T2.\n')
    print('| live blocks | writes | seen | p50 | p99 | cycle p50 | cycle p99 | ' +
          ' | '.join(name for _, name in exploits) + ' |')
    print('| --- |' + ' --- |' * (6 + len(exploits)))
    points = []
    for blocks, row in kinds['latency'].items():
        cycle = kinds.get('cycle', {}).get(blocks, {})
        seen = row.get('seen', [])
        cells = [f'{int(row["writes"][0])}', f'{len(seen)}']
        for percent in (50, 99):
            cells.append(f'{quantile(seen, percent):.3g}' if seen else '')
            if seen:
                points.append((f'to the report, p{percent}', blocks, quantile(seen, percent)))
        for p in ('p50', 'p99'):
            cells.append(f'{cycle[p][0]:.3g}' if p in cycle else '')
            if p in cycle:
                points.append((f'cycle, {p}', blocks, cycle[p][0]))
        cells += [chance(time * 1000, cycle_of(blocks)) for time, _ in exploits]
        print(f'| {int(blocks):,} | ' + ' | '.join(cells) + ' |')
    print()
    draw(points)


def exploit():
    print('Programs like those of known exploits (`bench/heap_exploit.c`): a string too long overwrites a',
          'pointer in the block behind, which is used after a while; T1 is that while, without us, the',
          'median; T2 the cycle at half of the time with that many live blocks, from above; and how often',
          '`--halt-on-error` ended the program before the pointer was used. Exploits that work by a free of',
          'the overrun block, by a second',
          'free, or by one of a wild pointer are not among them: the call itself finds those, always.\n')
    print('| what happens in between | live blocks | T1, ms | T2, ms | T1/T2 | stopped | runs |\n' +
          '| --- |' + ' --- |' * 6)
    for name, row in kinds['exploit'].items():
        way, blocks = name.split()
        t1, t2 = median(row['plain']) / 1000, cycle_of(blocks)
        print(f'| {way} | {int(blocks):,} | {t1:.3g} | {f"{t2:.3g}" if t2 else ""} | {chance(t1, t2)} |',
              f'{int(sum(row["stopped"]))} | {len(row["stopped"])} |')
    print()


def draw(points):
    plot = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'canary_plot.py')
    if len(points) < 2 or not os.path.exists(plot):
        return
    text = ''.join(f'{name}\t{x}\t{y}\n' for name, x, y in points)
    drawn = subprocess.run([sys.executable, plot, 'How soon the heap is looked at',
                            'live blocks', 'milliseconds'],
                           input=text, capture_output=True, text=True, check=True)
    with open(os.path.join(folder, 'heap-latency.svg'), 'w') as f:
        f.write(drawn.stdout)
    print('Drawn in `heap-latency.svg`.\n')


print('Columns are times the plain program\'s: the median of runs that stood next to each other,'
      ' and the middle half of them.\n')
if 'load' in kinds:
    print(f'Work that only allocates, {scale:,} allocations, nanoseconds for one and its free:\n')
    table('load', 'ns', 1)
    bars('load', 'Work that only allocates: times the plain one', 'heap-loads.svg')
if 'program' in kinds:
    print('Programs, wall time; of nginx, time for a request at that many connections. They come from',
          'the distribution and are not',
          'rebuilt, so there is no AddressSanitizer; Electric Fence ran once:\n')
    table('program', 'ms', 1000)
    bars('program', 'Programs: times the plain one', 'heap-programs.svg')
if 'memory' in kinds:
    memory()
if 'latency' in kinds:
    latency()
if 'exploit' in kinds:
    exploit()
