# SPDX-License-Identifier: MIT
# torch_compare.py MOAT CALLS SETS ROUNDS MODE SECONDS: what moat adds to a training step, estimated in two ways.
#   Measured   two processes, one alone and one watched, take turns, a few steps each time; SETS such pairs
#   Computed   driver calls per step, by moat's own counts, times what moat adds to a call. CALLS: a file from
#              bench/guard-calls.sh, or -: not computed
# The processes are forked from two that have imported PyTorch and have not used CUDA, so that a pair is there in seconds.
# Measuring ends after SECONDS, unless that is 0. Tables go to standard output.
import json
import os
import statistics
import sys
import tempfile
import time

import turns

moat, calls_file, sets, rounds, mode, seconds = (convert(word) for convert, word in zip((str, str, int, int, str, int), sys.argv[1:]))
script = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'torch_step.py')
log = tempfile.NamedTemporaryFile(suffix='.json')
MODELS = ['resnet-fp32', 'resnet-bf16', 'transformer-fp32', 'transformer-bf16']
STEPS, WARM = 3, 5
FEW, MANY = 20, 60  # steps whose counts are compared


def measure(players):
    figures = {name: [] for name in MODELS}
    end = time.monotonic() + seconds
    for i in range(sets):
        # The models share what time is left; the first set has all of them.
        for player in players:
            player.ask('begin')
        for j, name in enumerate(MODELS):
            turns.play(players, '%s %d' % (name, STEPS), WARM)
            left = (end - time.monotonic()) / (sets - i) / (len(MODELS) - j)
            figures[name].append(turns.play(players, '%s %d' % (name, STEPS), rounds, seconds and time.monotonic() + left))
        for player in players:
            player.ask('end')
        if seconds and time.monotonic() > end:
            break
    return figures


def counts_after(watched, name, steps):
    watched.ask('begin')
    watched.ask('%s %d' % (name, steps))
    pid = int(watched.ask('end')[-1])
    with open(log.name) as f:
        for line in f:
            event = json.loads(line)
            if event['event'] == 'end' and event['pid'] == pid:
                return {v['key']: v['value'] for v in event['watched']}
    sys.exit('torch_compare.py: moat has not counted process %d' % pid)


def count(watched, name):
    few, many = counts_after(watched, name, FEW), counts_after(watched, name, MANY)
    return {key: (many[key] - few.get(key, 0)) / (MANY - FEW) for key in ('launches', 'transfers', 'allocations', 'frees')}


# What moat adds to a call, in ns, with its confidence interval.
def added_per_call():
    added = {}
    for line in open(calls_file):
        name, *figures = line.split()
        added[name] = [float(figure) for figure in figures]
    worst_transfer = max((added[n] for n in ('copy_async', 'copy', 'memset_async')), key=lambda a: a[0])
    half = [x / 2 for x in added['alloc_free']]
    return {'launches': added['launch'], 'transfers': worst_transfer, 'allocations': half, 'frees': half}


def print_measured(figures):
    print('| step | alone ms | average added | median | worst | 95% confidence |')
    print('| --- | ---: | ---: | ---: | ---: | ---: |')
    for name, data in figures.items():
        added = [a * 100 for a in turns.added(data, 0, 1, share=True)]
        low, high = (x * 100 for x in turns.interval(data, 0, 1, share=True))
        print('| %s | %.3f | %+.2f%% | %+.2f%% | %+.2f%% | %+.2f%% to %+.2f%% |' % (
            name, turns.plain(data, 0) * 1e3, statistics.fmean(added), statistics.median(added), max(added), low, high))


def print_computed(figures, counts, added):
    print('| step | launches | transfers and memsets | allocations | frees | added us | of the step |')
    print('| --- | ---: | ---: | ---: | ---: | ---: | ---: |')
    for name, n in counts.items():
        us = [sum(n[key] * added[key][i] for key in added) / 1000 for i in range(3)]
        step = turns.plain(figures[name], 0) * 1e6
        print('| %s | %.1f | %.1f | %.1f | %.1f | %.1f (%.1f to %.1f) | %.2f%% (%.2f to %.2f) |' % (
            (name, n['launches'], n['transfers'], n['allocations'], n['frees']) + tuple(us) + tuple(u / step * 100 for u in us)))


serve = [sys.executable, script, 'serve']
watched = turns.Player([moat, '--device=gpu', '--mode=' + mode, '--format=json', '--log-file=' + log.name] + serve)
alone = turns.Player(serve)
for player in alone, watched:  # both import at once
    player.listen()
figures = measure([alone, watched])
alone.close()
counts = {name: count(watched, name) for name in MODELS} if calls_file != '-' else {}
watched.close()
turn_counts = [len(rounds) for data in figures.values() for rounds in data]
print('`--mode=%s`, %d pairs of processes that take turns, %d to %d times, %d steps each time. Average, median and worst are of the pairs,'
      ' each by the median of its differences.' % (mode, len(figures[MODELS[0]]), min(turn_counts), max(turn_counts), STEPS))
print()
print_measured(figures)
if counts:
    added = added_per_call()
    print()
    print('Computed: calls per step, by moat\'s counts, times what moat adds to a call on this machine (%s).' % ', '.join(
        '%s %.0f ns, %.0f to %.0f' % ((key,) + tuple(added[key])) for key in added))
    print()
    print_computed(figures, counts, added)
