# SPDX-License-Identifier: MIT
# canary_table.py ROWS WHAT UNIT BASE LABEL...: a Markdown table from lines of LABEL, NAME, WHAT, number,
# separated by tabs: what each LABEL adds to BASE, or LABEL:OTHER to OTHER, in percent. The i-th run of a
# label is compared with the i-th run of the base. Per name: the median of the runs. Below: over all names,
# average, median and worst of those medians, and the 95% confidence interval of the average, from the runs'
# own averages; and the average as if no name had become faster, which some do by far.
# In brackets, if they were counted: page faults in managed memory, of the CPU and of the GPU.
import statistics
import sys

# Student's t, two-sided 95%, by degrees of freedom; beyond the table the last one is near enough.
STUDENT = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16,
           2.14, 2.13, 2.12, 2.11, 2.10, 2.09, 2.09]
SCALE = {'ms': 1e3, 's': 1.0, 'us': 1e6}

path, what, unit, base, *labels = sys.argv[1:]
bases = {label: other or base for label, _, other in (argument.partition(':') for argument in labels)}
labels = list(bases)
runs, words, names, faults = {}, {}, [], {}
with open(path) as rows:
    for row in rows:
        label, name, measured, value = row.rstrip('\n').split('\t')
        if name not in names:
            names.append(name)
        if measured == what:
            runs.setdefault((label, name), []).append(float(value))
        elif measured in ('failed', 'skipped'):
            words[label, name] = measured
        elif measured in ('managed_cpu', 'managed_gpu'):
            faults.setdefault((label, name), {})[measured] = float(value)


def added(label, name):
    pairs = zip(runs.get((bases[label], name), []), runs.get((label, name), []))
    return [(b / a - 1) * 100 for a, b in pairs if a]


def interval(values):
    if len(values) < 3:
        return '-'
    half = STUDENT[min(len(values) - 2, len(STUDENT) - 1)] * statistics.stdev(values) / len(values) ** 0.5
    mean = statistics.fmean(values)
    return f'{mean - half:+.2f}% to {mean + half:+.2f}%'


def number(value):
    return f'{value:.0f}' if value >= 100 else f'{value:.3g}'


def cell(label, name):
    if (label, name) in words:
        return words[label, name]
    values = added(label, name)
    return (f'{statistics.median(values):+.2f}%' if values else '-') + counted([faults.get((label, name))])


def counted(counts):
    counts = [c for c in counts if c]
    if not counts:
        return ''
    return ' (%.0f, %.0f)' % tuple(
        statistics.fmean(c[what] for c in counts) for what in ('managed_cpu', 'managed_gpu'))


print(f'| | {base} {unit} | ' + ' | '.join(labels) + ' |')
print('| --- ' * (len(labels) + 2) + '|')
for name in names:
    alone = runs.get((base, name))
    first = number(statistics.median(alone) * SCALE[unit]) if alone else words.get((base, name), '-')
    first += counted([faults.get((base, name))])
    print(f'| {name} | {first} | ' + ' | '.join(cell(label, name) for label in labels) + ' |')


def over_all(title, pick):
    cells = []
    for label in labels:
        lists = [added(label, name) for name in names if (label, name) not in words]
        lists = [values for values in lists if values]
        cells.append((pick(lists) if lists else '-') +
                     (counted(faults.get((label, name)) for name in names) if title == 'average' else ''))
    print(f'| **{title}** | | ' + ' | '.join(cells) + ' |')


def by_run(lists):
    return [statistics.fmean(values) for values in zip(*lists)]


over_all('programs', lambda lists: str(len(lists)))
over_all('average', lambda lists: f'{statistics.fmean(map(statistics.median, lists)):+.2f}%')
over_all('average, with faster ones counted as equal',
         lambda lists: f'{statistics.fmean(max(0, statistics.median(values)) for values in lists):+.2f}%')
over_all('median', lambda lists: f'{statistics.median(map(statistics.median, lists)):+.2f}%')
over_all('worst', lambda lists: f'{max(map(statistics.median, lists)):+.2f}%')
over_all('95% confidence of the average', lambda lists: interval(by_run(lists)))
