# SPDX-License-Identifier: MIT
# check_load.py ROWS cpu|gpu ALL START LINK: the tables of check-load.sh, from its rows, of ALL programs.
# START, LINK: seconds that ptxas and nvlink take to start, 0 if the driver compiles.
import math
import statistics
import sys

WANTED = 3  # times the driver's own compile time
WAYS = ['together', 'apart, all launches proved', 'apart, every variant wanted']
rows = [line.split() for line in open(sys.argv[1]) if line.strip()]
rows = [(name, n, [float(s) for s in seconds]) for name, n, *seconds in rows]
if sys.argv[2] == 'gpu':
    print('Seconds by the clock: the program\'s PTX by cuModuleLoadData, and what moat and the driver '
          'take for a first load.')
else:
    print('Processor seconds, for sm_90: `ptxas` for the program\'s PTX, and moat, `ptxas -c` and `nvlink` '
          'for a first load, each text by a process of its own. Other work ran beside it.')
print('A program with - in the second column has kernels whose variants must be in its own module.\n')
if len(rows) < int(sys.argv[3]):
    print(f'Measured: {len(rows)} of {sys.argv[3]} programs; the others were left out, or time was over.\n')
start, link = map(float, sys.argv[4:6])


def starts(n, at):
    """Returns the seconds that processes of a column take to start."""
    together = 2 * start + link  # the text, the judge, and the linker
    if at == 0:
        return start
    if at == 1 or n == '-':
        return together
    return start if at == 2 else start + int(n) * together


def summary(title, measured):
    print(f'| {title} | average | median | worst | within {WANTED} times |')
    print('| --- | ---: | ---: | ---: | ---: |')
    for at, way in enumerate(WAYS, 1):
        ratios = {name: s[at] / s[0] for name, n, s in measured}
        worst = max(ratios, key=ratios.get)
        mean = math.exp(statistics.fmean(math.log(r) for r in ratios.values()))
        print(f'| {way} | {mean:.1f} | {statistics.median(ratios.values()):.1f} | '
              f'{ratios[worst]:.1f} ({worst}) | '
              f'{sum(r <= WANTED for r in ratios.values())} of {len(rows)} |')


summary('way', rows)
if start:
    least = min(s[0] for _, _, s in rows)
    print(f'\nOf these, {start:.3f} s are what `ptxas` takes for a module without anything in it, and '
          f'{link:.3f} s `nvlink`: the least that any program takes for its own PTX is {least:.3f} s. '
          'Without them, which a driver does not take, and which leave little of the smallest programs to '
          'divide by:\n')
    summary('way, without starting compilers',
            [(name, n, [max(s[at] - starts(n, at), 0.001) for at in range(len(s))])
             for name, n, s in rows])
print('\nTimes the time for the program\'s own PTX; averages are geometric means. All programs at once:',
      ', '.join(f'{way} {sum(s[at] for _, _, s in rows) / sum(s[0] for _, _, s in rows):.1f} times'
                for at, way in enumerate(WAYS, 1)) + '.')
print('\n| program | variants | own s | together s | proved s | every variant s | times | times | times |')
print('| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |')
for name, n, s in sorted(rows, key=lambda row: -row[2][1]):
    cells = [f'{x:.3f}' for x in s] + [f'{x / s[0]:.1f}' for x in s[1:]]
    print(f'| {name} | {n} |', ' | '.join(cells), '|')
