#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""proof_runs.py NAME REPORT...: what reports of `moat explain --format=json` say of real launches, as a row
of a table. A kernel counts once for each program that launches it."""
import json
import sys


def kernels_of(path):
    with open(path, errors='replace') as lines:
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if event.get('event') == 'proofs':
                yield from event['kernels']


def quantile(weighted, part):
    """The value that `part` of all weight lies at or below."""
    left = part * sum(weight for _, weight in weighted)
    for value, weight in sorted(weighted):
        left -= weight
        if left <= 0:
            return value
    return 0


name, *paths = sys.argv[1:]
programs = kernels = whole = inside = accesses = unbounded = unread = launches = 0
medians, slowest = [], []
for path in paths:
    found = list(kernels_of(path))
    programs += bool(found)
    for k in found:
        if k.get('unread'):
            unread += 1
            continue
        kernels += 1
        launches += k['launches']
        accesses += k['accesses']
        unbounded += k['not_bounded']
        whole += not k['not_bounded']
        inside += k['inside'] + k['unreachable'] == k['accesses']
        medians.append((k['median_ns'], k['launches']))
        slowest.append((k['most_ns'], k['launches']))
if kernels:
    print(f'| {name} | {programs} | {kernels} | {unread} | {launches} | {100 * whole / kernels:.0f} % | '
          f'{100 * inside / kernels:.0f} % | {100 * (accesses - unbounded) / accesses:.1f} | '
          f'{quantile(medians, .5)} / {quantile(slowest, .99)} |')
