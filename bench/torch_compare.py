# SPDX-License-Identifier: MIT
# torch_compare.py MOAT CALLS PAIRS STEPS MODE SECONDS: what moat adds to a training step, estimated in two ways.
#   Measured   pairs of processes, one alone and one watched, in turns: differences of their minima and of their medians
#   Computed   driver calls per step, by moat's own counts, times what moat adds to a call. CALLS: a file with lines
#              off|api NAME NS from bench/guard_calls.c, or -: not computed
# Both processes are forked from ones that have imported PyTorch and have not used CUDA, so that a pair takes seconds.
# No pair is begun after SECONDS, unless that is 0. Tables go to standard output.
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

moat, calls_file, pairs, steps, mode, seconds = (convert(word) for convert, word in zip((str, str, int, int, str, int), sys.argv[1:]))
script = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'torch_step.py')
log = tempfile.NamedTemporaryFile(suffix='.json')
SAMPLES = 10000
FEW, MANY = 20, 60  # steps whose counts are compared


class Server:
    def __init__(self, before):
        self.process = subprocess.Popen(before + [sys.executable, script, 'serve'], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    # Lines up to the one that says that it is done, and the process that did it.
    def read(self):
        lines = []
        for line in self.process.stdout:
            words = line.split()
            if words[0] in ('ready', 'done'):
                return lines, words[-1]
            if words[0] == 'failed':
                break
            lines.append(words)
        sys.exit('torch_compare.py: the server has failed')

    def order(self, text):
        self.process.stdin.write(text + '\n')
        self.process.stdin.flush()
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def interval(values):
    rng = random.Random(1)
    means = sorted(statistics.fmean(rng.choices(values, k=len(values))) for _ in range(SAMPLES))
    return means[int(SAMPLES * 0.025)], means[int(SAMPLES * 0.975)]


def measure(alone, watched):
    rows, begin = {}, time.monotonic()
    for i in range(pairs):
        if seconds and i > 1 and time.monotonic() - begin > seconds:
            break
        # The second of a pair finds the GPU warmer: each way is second as often.
        for way, server in ((0, alone), (1, watched))[::1 if i % 2 else -1]:
            for name, least, median in server.order('time %d' % steps)[0]:
                rows.setdefault(name, ([], []))[way].append((float(least), float(median)))
    return rows


def counts_of(pid):
    with open(log.name) as f:
        for line in f:
            event = json.loads(line)
            if event['event'] == 'end' and event['pid'] == int(pid):
                return {v['key']: v['value'] for v in event['watched']}
    sys.exit('torch_compare.py: moat has not counted process %s' % pid)


def count(watched, name):
    few = counts_of(watched.order('count %s %d' % (name, FEW))[1])
    many = counts_of(watched.order('count %s %d' % (name, MANY))[1])
    return {key: (many[key] - few.get(key, 0)) / (MANY - FEW) for key in ('launches', 'transfers', 'allocations', 'frees')}


# What moat adds to a call, in ns, with its confidence interval.
def added_per_call():
    runs = {}
    for line in open(calls_file):
        way, name, ns = line.split()[:3]
        runs.setdefault(name, {}).setdefault(way, []).append(float(ns))
    added = {}
    for name, ways in runs.items():
        differences = [b - a for a, b in zip(ways['off'], ways['api'])]
        added[name] = (statistics.fmean(differences),) + interval(differences)
    worst_transfer = max((added[n] for n in ('copy_async', 'copy', 'memset_async') if n in added), key=lambda a: a[0])
    half = tuple(x / 2 for x in added['alloc_free'])
    return {'launches': added['launch'], 'transfers': worst_transfer, 'allocations': half, 'frees': half}


def share(a, b):
    return [(y / x - 1) * 100 for x, y in zip(a, b)]


def cell(values):
    return '%+.2f%% (%+.2f to %+.2f)' % ((statistics.fmean(values),) + interval(values))


def print_measured(rows):
    print('| step | alone, median ms | added to medians | added to minima | runs alone differ by |')
    print('| --- | ---: | ---: | ---: | ---: |')
    for name, (alone, watched) in rows.items():
        medians = [m for _, m in alone]
        spread = (max(medians) / min(medians) - 1) * 100
        print('| %s | %.3f | %s | %s | %.1f%% |' % (
            name, statistics.median(medians) * 1e3, cell(share(medians, [m for _, m in watched])),
            cell(share([l for l, _ in alone], [l for l, _ in watched])), spread))


def print_computed(rows, counts, added):
    print('| step | launches | transfers and memsets | allocations | frees | added us | of the step |')
    print('| --- | ---: | ---: | ---: | ---: | ---: | ---: |')
    for name, n in counts.items():
        us = [sum(n[key] * added[key][i] for key in added) / 1000 for i in range(3)]
        step = statistics.median(m for _, m in rows[name][0]) * 1e6
        print('| %s | %.1f | %.1f | %.1f | %.1f | %.1f (%.1f to %.1f) | %.2f%% (%.2f to %.2f) |' % (
            (name, n['launches'], n['transfers'], n['allocations'], n['frees']) + tuple(us) + tuple(u / step * 100 for u in us)))


alone, watched = Server([]), Server([moat, '--device=gpu', '--mode=' + mode, '--format=json', '--log-file=' + log.name])
for server in alone, watched:  # both import at once
    server.read()
rows = measure(alone, watched)
alone.close()
counts = {name: count(watched, name) for name in rows} if calls_file != '-' else {}
watched.close()
print('`--mode=%s`, %d pairs of processes, %d steps in each; intervals hold 95%%, from %d bootstrap samples.' % (
    mode, len(next(iter(rows.values()))[0]), steps, SAMPLES))
print()
print_measured(rows)
if counts:
    added = added_per_call()
    print()
    print('Computed: calls per step, by moat\'s counts, times what moat adds to a call on this machine (%s).' % ', '.join(
        '%s %.0f ns, %.0f to %.0f' % ((key,) + added[key]) for key in added))
    print()
    print_computed(rows, counts, added)
