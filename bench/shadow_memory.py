# SPDX-License-Identifier: MIT
# shadow_memory.py TRACE LEVEL LEAST FACTOR: what redzones and shadow would add to the allocations of a trace
# (bench/shadow_trace.c), of FACTOR times their sizes, in the way that the GASan paper simulates: memory
# without end, the first place that is large enough, redzones of LEVEL percent of a buffer and at least LEAST
# bytes, one of which serves two neighbours, and a byte of shadow for 256 bytes, as many as the next power of
# two. Prints PEAK OTHERS SHADOW: the most bytes that the program has at a time, how far beyond them the
# buffers and redzones reach, and the shadow. Sizes are rounded up to 256 bytes, and the whole to pages of 4
# KiB.
# shadow_memory.py --table LEVELS < ROWS: the table of bench/shadow-memory.sh; rows are NAME PEAK and, for
# each level, OTHERS SHADOW of the simulation and of moat.
import sys


def read(path):
    """(True, id, bytes) for an allocation and (False, id, 0) for a free."""
    with open(path) as f:
        for line in f:
            word = line.split()
            if word[0] == 'a' and len(word) == 4 and int(word[2]):
                yield True, word[1], int(word[2])
            elif word[0] == 'f':
                yield False, word[1], 0


def place(taken, size, redzone):
    """The first address with room for the buffer and for the wider redzone on either side."""
    end, wide = 0, 0
    for i, (base, last, zone, _) in enumerate(taken):
        at = end + max(wide, redzone)
        if at + size + max(redzone, zone) <= base:
            return i, at
        end, wide = last, zone
    return len(taken), end + max(wide, redzone)


def simulate(path, level, least, factor):
    taken, live, peak, reach = [], 0, 0, 0
    sizes = {}
    for made, name, size in read(path):
        if made and name not in sizes:
            size *= factor
            redzone = -(-max(size * level // 100, least) // 256) * 256
            rounded = -(-size // 256) * 256
            i, at = place(taken, rounded, redzone)
            taken.insert(i, (at, at + rounded, redzone, name))
            sizes[name] = size
            live += size
            peak = max(peak, live)
            reach = max(reach, max(last + zone for _, last, zone, _ in taken))
        elif not made and name in sizes:
            live -= sizes.pop(name)
            taken = [t for t in taken if t[3] != name]
    reach = -(-reach // 4096) * 4096
    shadow = 1
    while shadow < -(-reach // 256):
        shadow *= 2
    return peak, reach - peak, max(shadow, 4096) if peak else 0


def table(levels):
    rows = [line.split() for line in sys.stdin]
    heads = [f'{who} {level} %' for who in ('simulated', 'moat') for level in levels]
    print('| program | bytes | ' + ' | '.join(heads) + ' |')
    print('| --- | ---: |' + ' ---: |' * (2 * len(levels)))
    percent = {}
    for row in rows:
        name, peak, rest = row[0], int(row[1]), [int(v) for v in row[2:]]
        cells = []
        for way in range(2):
            for i in range(len(levels)):
                at = 4 * i + 2 * way
                both = [100 * v / peak for v in rest[at:at + 2]]
                percent.setdefault((way, i), []).append(both)
                cells.append(f'{both[0]:.1f} + {both[1]:.2f}')
        print(f'| {name} | {peak} | ' + ' | '.join(cells) + ' |')
    for what, of in (('mean', lambda v: sum(v) / len(v)), ('most', max)):
        cells = []
        for way in range(2):
            for i in range(len(levels)):
                cells.append(' + '.join(f'{of([b[k] for b in percent[way, i]]):.{1 + k}f}' for k in range(2)))
        print(f'| {what} | | ' + ' | '.join(cells) + ' |')
    for way, who in enumerate(('simulated', 'moat')):
        for i, level in enumerate(levels):
            for k, part in enumerate(('redzones', 'shadow')):
                mean = sum(b[k] for b in percent[way, i]) / len(percent[way, i])
                print(f'{who}, {part}\t{level}\t{mean:.4f}', file=sys.stderr)


if sys.argv[1] == '--table':
    table(sys.argv[2].split())
else:
    print(*simulate(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
