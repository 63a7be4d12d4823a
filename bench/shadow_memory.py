# SPDX-License-Identifier: MIT
# shadow_memory.py TRACE LEVEL LEAST FACTOR: what redzones and shadow would add to the allocations of a trace
# (bench/shadow_trace.c), of FACTOR times their sizes, in the way that the GASan paper simulates: memory
# without end, the first place that is large enough, redzones of LEVEL percent of a buffer and at least LEAST
# bytes, one of which serves two neighbours, and a byte of shadow for 256 bytes, as many as the next power of
# two. Prints PEAK OTHERS SHADOW: the most bytes that the program has at a time, how far beyond them the
# buffers and redzones reach, and the shadow. Sizes are rounded up to 256 bytes, and the whole to pages of 4
# KiB.
# shadow_memory.py --table PAIRS < ROWS: a table of bench/shadow-memory.sh, of the pairs LEVEL,LEAST with the
# least LEAST; rows are NAME PEAK and, for each pair, OTHERS SHADOW of the simulation and of moat.
# shadow_memory.py --pairs PAIRS < ROWS: means over all rows, a pair in each line.
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


def read_rows(pairs):
    """(NAME, PEAK, percentages by way and pair: redzones and rounding, and shadow)"""
    for line in sys.stdin:
        name, peak, *rest = line.split()
        rest = [100 * int(v) / int(peak) for v in rest]
        ways = [(way, i) for way in range(2) for i in range(len(pairs))]
        yield name, peak, {(way, i): rest[4 * i + 2 * way:][:2] for way, i in ways}


def columns_of(percent, keys, of):
    return [' + '.join('%.*f' % (1 + k, of([row[key][k] for row in percent])) for k in range(2))
            for key in keys]


def mean(values):
    return sum(values) / len(values)


def table(pairs):
    least = min(int(b) for _, b in pairs)
    shown = [i for i, (_, b) in enumerate(pairs) if int(b) == least]
    keys = [(way, i) for way in range(2) for i in shown]
    percent = []
    print('| program | bytes | ' +
          ' | '.join('%s %s %%' % (('simulated', 'moat')[way], pairs[i][0]) for way, i in keys) + ' |')
    print('| --- | ---: |' + ' ---: |' * len(keys))
    for name, peak, row in read_rows(pairs):
        percent.append(row)
        print('| %s | %s | %s |' % (name, peak, ' | '.join('%.1f + %.2f' % tuple(row[key]) for key in keys)))
    for what, of in ('mean', mean), ('most', max):
        print('| %s | | %s |' % (what, ' | '.join(columns_of(percent, keys, of))))
    for way, i in keys:
        for k, part in enumerate(('redzones', 'shadow')):
            print('%s, %s\t%s\t%.4f' % (('simulated', 'moat')[way], part, pairs[i][0],
                                       mean([row[way, i][k] for row in percent])), file=sys.stderr)


def table_of_pairs(pairs):
    percent = [row for _, _, row in read_rows(pairs)]
    print('| L | B | simulated | moat |')
    print('| ---: | ---: | ---: | ---: |')
    for i, (level, least) in enumerate(pairs):
        print('| %s %% | %s | %s |' % (level, least,
                                      ' | '.join(columns_of(percent, [(0, i), (1, i)], mean))))


def main():
    if sys.argv[1] in ('--table', '--pairs'):
        pairs = [pair.split(',') for pair in sys.argv[2].split()]
        (table if sys.argv[1] == '--table' else table_of_pairs)(pairs)
    else:
        print(*simulate(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))


main()
