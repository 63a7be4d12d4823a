# SPDX-License-Identifier: MIT
# kheap_table.py ROWS POINTS: tables in Markdown from lines of LABEL, PROGRAM, THREADS, milliseconds,
# separated by tabs, as bench/kheap.sh collects them; to the file POINTS, what bench/canary_plot.py draws.
import statistics
import sys

PROGRAMS = ['alloc-dealloc', 'alloc-cycle-dealloc', 'grid-point', 'add-string', 'random-graph']
ALONE = ['malloc-16', 'malloc-256']

runs = {}
with open(sys.argv[1]) as rows:
    for row in rows:
        label, program, threads, ms = row.rstrip('\n').split('\t')
        runs.setdefault((label, program, int(threads)), []).append(float(ms))


def median(label, program, threads):
    values = runs.get((label, program, threads))
    return statistics.median(values) if values else None


def number(value):
    return '-' if value is None else f'{value:.0f}' if value >= 100 else f'{value:.3g}'


def threads_of(programs):
    return sorted({n for label, program, n in runs if program in programs and label in ('cuda', 'ours')})


def compare(programs, points):
    print('| program | threads | CUDA ms | moat ms | times as fast |')
    print('| --- | --- | --- | --- | --- |')
    ratios = []
    for program in programs:
        for n in threads_of(programs):
            cuda, ours = median('cuda', program, n), median('ours', program, n)
            ratio = cuda / ours if cuda and ours else None
            if ratio:
                ratios.append(ratio)
                print(program, n, ratio, sep='\t', file=points)
            print(f'| {program} | {n} | {number(cuda)} | {number(ours)} | {number(ratio)} |')
    if ratios:
        print(f'| **average** (geometric) | | | | {number(statistics.geometric_mean(ratios))} |')
        print(f'| **median** | | | | {number(statistics.median(ratios))} |')
        print(f'| **worst** | | | | {number(min(ratios))} |')


with open(sys.argv[2], 'w') as points:
    compare(PROGRAMS, points)
    print('\nmalloc without free:\n')
    compare(ALONE, points)

labels = sorted((label for label, _, _ in runs if label.startswith('arrays ')),
                key=lambda label: int(label.split()[1]))
labels = list(dict.fromkeys(labels))
if labels:
    names = list(dict.fromkeys((p, n) for label, p, n in runs if label in labels and p in PROGRAMS + ALONE))
    print('\nMilliseconds by number of byte arrays:\n')
    print('| program | threads | ' + ' | '.join(labels) + ' |')
    print('| --- ' * (len(labels) + 2) + '|')
    for program, n in names:
        print(f'| {program} | {n} | ' +
              ' | '.join(number(median(label, program, n)) for label in labels) + ' |')

scans = sorted({n for _, p, n in runs if p == 'scan'})
if scans:
    # The comparison with CUDA's heap has 32 arrays too.
    for n in scans:
        runs.setdefault(('arrays 32', 'scan', n), []).extend(runs.get(('ours', 'scan', n), []))
    labels = sorted({name for name, p, _ in runs if p == 'scan' and name != 'ours'},
                    key=lambda name: int(name.split()[1]))
    print('\nMilliseconds of one scan of all arrays, on an idle device:\n')
    print('| live blocks | ' + ' | '.join(labels) + ' |')
    print('| --- ' * (len(labels) + 1) + '|')
    for n in scans:
        print(f'| {n} | ' + ' | '.join(number(median(label, 'scan', n)) for label in labels) + ' |')

found = sorted((n, values) for (label, program, n), values in runs.items() if program == 'latency')
if found:
    print('\nFrom the end of the kernel that writes outside to the record, scans a millisecond apart:\n')
    print('| live blocks | median ms | average | worst | writes |')
    print('| --- | --- | --- | --- | --- |')
    for n, values in found:
        print(f'| {n} | {number(statistics.median(values))} | {number(statistics.fmean(values))} | '
              f'{number(max(values))} | {len(values)} |')
