# SPDX-License-Identifier: MIT
# torch_compare.py MOAT MODELS SETS ROUNDS SECONDS CALLS WAY...: what moat adds to a training step of each of
# the MODELS of bench/torch_step.py, separated by commas, and by slashes into groups with a summary each. Each
# WAY is a word for the table, a colon, and options of moat; without options the program runs without moat:
# that shows how far two equal processes are apart, and others are compared with the mean of both.
#   Measured   processes, one alone and one for each way, take turns, a few steps each time; SETS such sets
#   Computed   driver calls per step, by moat's own counts, times what moat adds to a call in the first way.
#              CALLS: a file from bench/guard-calls.sh, or -: not computed
# The processes are forked from some that have imported PyTorch and have not used CUDA, so that a set is ready
# in seconds. Measuring ends after SECONDS, unless that is 0. Tables go to standard output.
# TORCH_COMPARE_ROWS=FILE: results are kept there as they come, a line for each model and set, and those there
# already, of the same ways, count. The file is for one build and one GPU: see rows-key.
import json
import os
import statistics
import sys
import tempfile
import time

import turns

moat, models, sets, rounds, seconds, calls_file = sys.argv[1:7]
groups = [group.split(',') for group in models.split('/')]
models, sets, rounds, seconds = sum(groups, []), int(sets), int(rounds), int(seconds)
ways = [(word.partition(':')[0], word.partition(':')[2].split()) for word in sys.argv[7:]]
script = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'torch_step.py')
rows = os.environ.get('TORCH_COMPARE_ROWS')
STEPS, WARM = 3, 5
FEW, MANY = 20, 60  # steps whose counts are compared


# Lines of [options of all ways, model, its turns in one set of processes].
def kept():
    figures = {name: [] for name in models}
    if rows and os.path.exists(rows):
        with open(rows) as f:
            for line in f:
                # The last one may have been truncated.
                options, name, data = json.loads(line) if line.endswith(']\n') else ([], '', [])
                if options == [way[1] for way in ways] and name in figures:
                    figures[name].append(data)
    return figures


def keep(name, data):
    if rows:
        with open(rows, 'a') as f:
            print(json.dumps([[way[1] for way in ways], name, data]), file=f)


def measure(players, figures):
    end = time.monotonic() + seconds
    for i in range(sets):
        # A set that would get less than half of its time is not started.
        if seconds and i and end - time.monotonic() < seconds / sets / 2:
            break
        missing = [name for name in models if len(figures[name]) <= i]
        for player in players if missing else []:
            player.ask('begin')
        for j, name in enumerate(missing):
            turns.play(players, '%s %d' % (name, STEPS), WARM)
            left = (end - time.monotonic()) / (sets - i) / (len(missing) - j)
            figures[name].append(turns.play(players, '%s %d' % (name, STEPS), rounds,
                                            seconds and time.monotonic() + left))
            keep(name, figures[name][-1])
        for player in players if missing else []:
            player.ask('end')


def counts_after(watched, log, name, steps):
    watched.ask('begin')
    watched.ask('%s %d' % (name, steps))
    pid = int(watched.ask('end')[-1])
    with open(log) as f:
        for line in f:
            event = json.loads(line)
            if event['event'] == 'end' and event['pid'] == pid:
                return {v['key']: v['value'] for v in event['watched']}
    sys.exit('torch_compare.py: moat has not counted process %d' % pid)


def count(watched, log, name):
    few, many = counts_after(watched, log, name, FEW), counts_after(watched, log, name, MANY)
    return {key: (many[key] - few.get(key, 0)) / (MANY - FEW)
            for key in ('launches', 'transfers', 'allocations', 'frees')}


# What moat adds to a call, in ns, with its confidence interval.
def added_per_call():
    added = {}
    for line in open(calls_file):
        name, *figures = line.split()
        added[name] = [float(figure) for figure in figures]
    worst_transfer = max((added[n] for n in ('copy_async', 'copy', 'memset_async')), key=lambda a: a[0])
    half = [x / 2 for x in added['alloc_free']]
    return {'launches': added['launch'], 'transfers': worst_transfer, 'allocations': half, 'frees': half}


# Rounds of [without moat, that way].
def against_plain(data, way):
    plain = [0] + [i + 1 for i, (_, options) in enumerate(ways) if not options and i + 1 != way]
    return [[[statistics.fmean(row[i] for i in plain), row[way]] for row in rounds] for rounds in data]


def print_measured(figures, way, label):
    print('\n| step, %s | alone ms | average added | median | worst | 95%% confidence |' % label)
    print('| --- | ---: | ---: | ---: | ---: | ---: |')
    means = {}
    for name, data in figures.items():
        data = against_plain(data, way)
        added = [a * 100 for a in turns.added(data, 0, 1, share=True)]
        means[name] = statistics.fmean(added)
        low, high = (x * 100 for x in turns.interval(data, 0, 1, share=True))
        print('| %s | %.3f | %+.2f%% | %+.2f%% | %+.2f%% | %+.2f%% to %+.2f%% |' % (
            name, turns.plain(data, 0) * 1e3, means[name], statistics.median(added), max(added), low, high))
    for group in groups:
        measured = [name for name in group if name in means]
        of = [means[name] for name in measured]
        if not of:
            continue
        whom = 'the models' if len(groups) == 1 else '%s to %s' % (measured[0], measured[-1])
        print('\nOver %s: %+.2f%% on average, %+.2f%% in the middle, %+.2f%% at worst.' % (
            whom, statistics.fmean(of), statistics.median(of), max(of)))


def print_computed(figures, counts, added):
    print('\nComputed: calls per step, by moat\'s counts, times what moat adds to a call on this'
          ' machine (%s).\n' % ', '.join(
        '%s %.0f ns, %.0f to %.0f' % ((key,) + tuple(added[key])) for key in added))
    print('| step | launches | transfers and memsets | allocations | frees | added us | of the step |')
    print('| --- | ---: | ---: | ---: | ---: | ---: | ---: |')
    for name, n in counts.items():
        us = [sum(n[key] * added[key][i] for key in added) / 1000 for i in range(3)]
        step = turns.plain(figures[name], 0) * 1e6
        print('| %s | %.1f | %.1f | %.1f | %.1f | %.1f (%.1f to %.1f) | %.2f%% (%.2f to %.2f) |' % (
            (name, n['launches'], n['transfers'], n['allocations'], n['frees']) + tuple(us) +
            tuple(u / step * 100 for u in us)))


# Prints the tables of all that was measured.
def print_tables(figures):
    figures = {name: data for name, data in figures.items() if data}
    turn_counts = [len(rounds) for data in figures.values() for rounds in data]
    if not turn_counts:
        return
    print('%d sets of processes that take turns, %d to %d times, %d steps each time.'
          ' Average, median and worst are of the sets, each by'
          ' the median of its differences. The number behind a model is that of examples in a batch.' % (
              max(len(data) for data in figures.values()), min(turn_counts), max(turn_counts), STEPS))
    for i, (label, _) in enumerate(ways):
        print_measured(figures, i + 1, label)


# A program may fail because of what moat took for an error.
def tell_errors(logs):
    for log in logs:
        if os.path.exists(log):
            with open(log) as f:
                errors = [line for line in f if '"event":"error"' in line]
            for line in errors[:2]:
                print('torch_compare.py: moat reported:', line[:2000], file=sys.stderr)


def main(folder):
    figures = kept()
    serve = [sys.executable, script, 'serve']
    logs = [os.path.join(folder, '%d.json' % i) for i in range(len(ways))]
    players = [turns.Player(serve)] + [
        turns.Player([moat, '--device=gpu', '--format=json', '--log-file=' + log] + options + serve
                     if options else serve)
        for log, (_, options) in zip(logs, ways)]
    for player in players:  # all import at once
        player.listen()
    try:
        measure(players, figures)
    except SystemExit as end:
        turns.end_all()
        tell_errors(logs)
        print_tables(figures)
        raise end
    # The calls are the same, however many examples there are.
    kinds = {name.rpartition('-')[0]: name for name in models} if calls_file != '-' else {}
    counts = {name: count(players[1], logs[0], name) for name in kinds.values()}
    for player in players:
        player.close()
    print_tables(figures)
    if counts:
        print_computed(figures, counts, added_per_call())


with tempfile.TemporaryDirectory() as folder:
    main(folder)
