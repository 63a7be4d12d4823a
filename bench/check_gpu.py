# SPDX-License-Identifier: MIT
# check_gpu.py ROWS LIST: the table of check-gpu.sh, from its rows and its list of programs.
import collections
import math
import statistics
import sys

LABELS = ['native', 'ptx', 'check', 'noproofs']
APART = 'device_heap'  # measures malloc in kernels, which moat replaces
rows, programs = sys.argv[1:3]
names = [line.split('\t')[0] for line in open(programs) if line.strip()]

runs = collections.defaultdict(lambda: collections.defaultdict(list))  # times of a program's runs, by label
launches = collections.defaultdict(dict)  # the last run's, with proofs
failed, sanitizer = {}, {}
before = None
for line in open(rows):
    label, name, first, second, *rest = line.split(maxsplit=4) + ['-']
    if label == 'sanitizer':
        if float(first) > 0:
            sanitizer[name] = float(second) / float(first)
    elif first in ('failed', 'skipped'):
        failed[name, label] = first if first == 'skipped' else 'failed (%s)' % second
    elif first == 'launches':
        if label == 'check':
            what, number = rest[0].strip().split(':')
            launches[name][what] = int(number.replace(',', ''))
    else:
        # The rows of a run stand together.
        if before != (label, name):
            runs[name][label].append(0)
        runs[name][label][-1] += int(second)
    before = label, name


def least(name, label):
    return min(runs[name][label]) if runs[name].get(label) else None


def ratio(name, label, base):
    mine, other = least(name, label), least(name, base)
    return mine / other if mine and other else None


def cell(value, form='%.3f'):
    return '' if value is None else form % value


def summary(what, values):
    """One line: average, median and worst, and the geometric mean."""
    if not values:
        return
    by_value = sorted(values, key=lambda pair: pair[1])
    numbers = [value for _, value in by_value]
    print('| %s | %d | %.3f | %.3f | %.3f | %.3f (%s) |' % (
        what, len(numbers), math.exp(statistics.fmean(map(math.log, numbers))), statistics.fmean(numbers),
        statistics.median(numbers), numbers[-1], by_value[-1][0]))


rounds = [len(of[label]) for of in runs.values() for label in of]
print('Time on the GPU of all kernels of a program, by CUPTI, moat\'s own included; the least of %s runs in'
      ' turns. native: machine code of nvcc -O3; PTX: the same PTX, compiled by the driver. Columns with a'
      ' ratio are over native. proved: launches that ran without checks, in part: with some, of those that'
      ' were checked.' % ('%d to %d' % (min(rounds), max(rounds)) if rounds else 'no'))
print()
print('| program | native ms | PTX | check | check over PTX | without proofs | launches | proved | in part |'
      ' compute-sanitizer |')
print('| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |')
ratios = collections.defaultdict(list)
for name in names:
    bad = [failed[name, label] for label in LABELS if (name, label) in failed]
    if bad or not runs[name]:
        print('| %s | %s | | | | | | | | |' % (name, '; '.join(bad) or 'not run'))
        continue
    of = launches[name]
    whole = of.get('checked', 0) > 0 and of.get('checked') == of.get('proved')
    values = {'PTX': ratio(name, 'ptx', 'native'), 'check': ratio(name, 'check', 'native'),
              'check over PTX': ratio(name, 'check', 'ptx'),
              'without proofs': ratio(name, 'noproofs', 'native'),
              'compute-sanitizer (work)': sanitizer.get(name)}
    for what, value in values.items():
        if value and name != APART:
            ratios[what].append((name, value))
    if whole and values['check over PTX'] and name != APART:
        ratios['wholly proved programs, over PTX'].append((name, values['check over PTX']))
    print('| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |' % (
        name, cell((least(name, 'native') or 0) / 1e6, '%.2f'), *(cell(v) for v in list(values.values())[:4]),
        of.get('checked', 0), of.get('proved', 0), of.get('in_part', 0),
        cell(values['compute-sanitizer (work)'], '%.1f')))
print()
print('| over native, unless said otherwise | programs | geometric mean | average | median | worst |')
print('| --- | ---: | ---: | ---: | ---: | ---: |')
for what, values in ratios.items():
    summary(what, values)
total = collections.Counter()
for of in launches.values():
    total.update(of)
print()
print('Means are without %s, whose malloc in kernels is moat\'s own under check.' % APART)
print('Of %d launches that were checked, %d were proved wholly and %d in part.' % (
    total['checked'], total['proved'], total['in_part']))
if sanitizer:
    print('compute-sanitizer is compared by the time that the program\'s work takes, with fewer repetitions.')
