# SPDX-License-Identifier: MIT
# kernel_runs.py MODE ROWS LIST: the tables of check-gpu.sh, fence-gpu.sh and shadow-suite-gpu.sh, from the
# rows of kernel_runs and its list of programs. kernel_runs.py plot ROWS LIST: lines for canary_plot.py, the
# geometric means under shadow mode by encoding.
import collections
import math
import statistics
import sys

APART = 'device_heap'  # measures malloc in kernels, which moat replaces
# Ways over native with their titles; the way whose launches are counted, and what is counted of them.
MODES = {
    'check': ([('check', 'check'), ('check-noproofs', 'without proofs'),
               ('check-together', 'variants together')],
              'check', ['checked', 'proved', 'in_part']),
    'fence': ([('fence', 'mask'), ('fence-noproofs', 'mask without proofs'), ('fence-check', 'check'),
               ('fence-modulo', 'modulo')],
              'fence', ['fenced', 'proved', 'masked']),
    'shadow': ([('shadow', 'shadow'), ('shadow-noproofs', 'without proofs')] + [
        ('shadow-%s%s' % (scale, load), '%s%s' % (scale, load.replace('-', ', ')))
        for scale in ('256', '128', '8') for load in ('', '-unloaded')],
               'shadow', ['checked', 'proved', 'in_part']),
}
ASKED_FOR = {'check-noproofs', 'check-together'}  # ways that are no column unless they were measured
MEANINGS = {'checked': 'launches', 'fenced': 'launches', 'in_part': 'in part'}
NOTES = {
    'check': 'proved: launches that ran without checks, in part: with some, of those that were checked.',
    'fence': 'proved: launches that ran without a fence; masked: by the mask alone, of those that were'
             ' fenced.',
    'shadow': 'The other columns are named by the bytes of memory that a byte of the shadow describes:'
              ' without proofs, and with --shadow-roots=no. unloaded: without the load of the shadow, by'
              ' which nothing is checked. proved and in part: of the launches that were checked, with'
              ' proofs.',
}


def number(text):
    return int(text.replace(',', ''))


class Rows:
    def __init__(self, path):
        # Times of a program's runs, by way; what the last run counted.
        self.runs = collections.defaultdict(lambda: collections.defaultdict(list))
        self.counts = collections.defaultdict(dict)
        self.failed, self.sanitizer = {}, {}
        with open(path, errors='replace') as f:
            for line in f:
                words = line.split(maxsplit=4)
                if len(words) >= 4:
                    self.add(*(words + [''])[:5])

    def add(self, way, name, first, second, rest):
        if way == 'sanitizer':
            if float(first) > 0 and float(second) > 0:
                self.sanitizer[name] = float(second) / float(first)
        elif first == 'failed':
            self.failed[name, way] = 'failed (%s)' % second
        elif first == 'skipped':
            self.failed[name, way] = first
        elif first == 'launches':
            what, value = rest.strip().split(':')
            self.counts[name, way][what] = number(value)
        elif first == 'run':
            self.runs[name][way].append(0)
        elif self.runs[name][way]:
            self.runs[name][way][-1] += int(second)

    def has(self, way, names):
        return any(self.runs[name].get(way) or (name, way) in self.failed for name in names)

    def least(self, name, way):
        times = self.runs[name].get(way)
        return min(times) if times else None

    def ratio(self, name, way, base):
        mine, other = self.least(name, way), self.least(name, base)
        return mine / other if mine and other else None


def mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def cell(value, form='%.3f'):
    return '' if value is None else form % value


def summary(what, values):
    by_value = sorted(values, key=lambda pair: pair[1])
    numbers = [value for _, value in by_value]
    print('| %s | %d | %.3f | %.3f | %.3f | %.3f (%s) |' % (
        what, len(numbers), mean(numbers), statistics.fmean(numbers), statistics.median(numbers),
        numbers[-1], by_value[-1][0]))


def print_tables(mode, rows, names):
    ways, counted, words = MODES[mode]
    ways = [(way, title) for way, title in ways if way not in ASKED_FOR or rows.has(way, names)]
    shown = ['native', 'ptx'] + [way for way, _ in ways]
    rounds = [len(rows.runs[name][way]) for name in names for way in shown if rows.runs[name].get(way)]
    print('Time on the GPU of all kernels of a program, by CUPTI, moat\'s own included; the least of %s runs'
          ' in turns. native: machine code of nvcc -O3; PTX: the same PTX, compiled by the driver. Columns'
          ' with a ratio are over native. %s' % ('%d to %d' % (min(rounds), max(rounds)) if rounds else 'no',
                                          NOTES[mode]))
    print()
    sanitized = mode != 'fence' and any(name in rows.sanitizer for name in names)
    heads = (['program', 'native ms', 'PTX'] + [title for _, title in ways] + ['first over PTX'] +
             [MEANINGS.get(word, word) for word in words] + ['compute-sanitizer'] * sanitized)
    print('| %s |' % ' | '.join(heads))
    print('| --- |%s' % (' ---: |' * (len(heads) - 1)))
    ratios = collections.defaultdict(list)
    total, shares = collections.Counter(), []
    for name in names:
        bad = ['%s: %s' % (way, rows.failed[name, way]) for way in shown if (name, way) in rows.failed]
        if not any(rows.runs[name].get(way) for way in shown):
            print('| %s | %s |%s' % (name, '; '.join(bad) or 'not run', ' |' * (len(heads) - 2)))
            continue
        values = [('PTX', rows.ratio(name, 'ptx', 'native'))]
        values += [(title, rows.ratio(name, way, 'native')) for way, title in ways]
        values.append(('%s over PTX' % ways[0][1], rows.ratio(name, ways[0][0], 'ptx')))
        cells = [cell(value) for _, value in values]
        for i, way in enumerate(shown[1:]):
            if (name, way) in rows.failed:
                cells[i] = rows.failed[name, way]
        counts = rows.counts.get((name, counted), {})
        total.update(counts)
        values.append(('compute-sanitizer, work', rows.sanitizer.get(name) if sanitized else None))
        all_of_it = counts.get(words[0], 0)
        if all_of_it:
            shares.append(100 * counts.get('proved', 0) / all_of_it)
        if all_of_it and counts.get('proved') == all_of_it:
            values.append(('wholly proved programs, over PTX', values[len(ways) + 1][1]))
        for what, value in values:
            if value and name != APART:
                ratios[what].append((name, value))
        cells += [str(counts.get(word, 0)) for word in words]
        cells += [cell(rows.sanitizer.get(name), '%.1f')] * sanitized
        native = rows.least(name, 'native')
        print('| %s | %s | %s |' % (
            name, cell(native / 1e6 if native else None, '%.2f'), ' | '.join(cells)))
    print()
    print('first over PTX: %s, over the driver\'s code for the same PTX.' % ways[0][1])
    print()
    print('| over native, unless said otherwise | programs | geometric mean | average | median | worst |')
    print('| --- | ---: | ---: | ---: | ---: | ---: |')
    for what, values in ratios.items():
        summary(what, values)
    if mode == 'shadow':
        same = with_all(rows, names)
        for way, title in ways[2:] if same and len(same) < len(ratios[ways[2][1]]) else []:
            if rows.ratio(same[0], way, 'native'):
                summary(title + ', of those by all encodings',
                        [(name, rows.ratio(name, way, 'native')) for name in same])
    print()
    if APART in names:
        print('Means are without %s, whose malloc in kernels is moat\'s own.' % APART)
    said = words[1:] + ['not_checked' if words[0] == 'checked' else 'not_fenced']
    print('Of %d launches: %s.' % (
        total[words[0]] + total[said[-1]],
        ', '.join('%d %s' % (total[word], word.replace('_', ' ')) for word in said)))
    if shares:
        print('Of the launches that were %s %.1f %% were wholly proved; if each of the %d programs counts the'
              ' same, %.1f %%, and all launches of %d programs.' % (
                  words[0], 100 * total['proved'] / total[words[0]], len(shares), statistics.fmean(shares),
                  sum(share == 100 for share in shares)))
    if sanitized:
        print('compute-sanitizer is compared by the time that the program\'s work takes, with fewer'
              ' repetitions.')


def with_all(rows, names):
    """The programs that were measured by all encodings that any was measured by: their means compare."""
    ways = [way for way, _ in MODES['shadow'][0][2:] if any(rows.ratio(n, way, 'native') for n in names)]
    return [n for n in names if n != APART and all(rows.ratio(n, way, 'native') for way in ways)]


def print_plot(rows, names):
    names = with_all(rows, names)
    for way, _ in MODES['shadow'][0][2:]:
        values = [v for v in (rows.ratio(n, way, 'native') for n in names) if v]
        if values:
            scale = way.split('-')[1]
            load = 'not loaded' if way.endswith('-unloaded') else 'loaded'
            print('geometric mean, %s\t%s\t%.4f' % (load, scale, mean(values)))
            print('worst, %s\t%s\t%.4f' % (load, scale, max(values)))


def main():
    mode, path, programs = sys.argv[1:4]
    rows = Rows(path)
    with open(programs) as f:
        names = [line.split('\t')[0] for line in f if line.strip()]
    if mode == 'plot':
        print_plot(rows, names)
    else:
        print_tables(mode, rows, sorted(names))


main()
