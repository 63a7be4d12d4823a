# SPDX-License-Identifier: MIT
# check_code.py kernels NAME (PTX SASS LOG)...: rows of the kernels in texts: NAME KERNEL VARIANT INSTRUCTIONS
# HOT REGISTERS SPILLED CALLS WHOLE RUNS UNIT, from what `ptxas -c -v -lineinfo` says and `nvdisasm -c -gp`
# prints.
# check_code.py limits PTX LOG: how many registers variants may use.
# check_code.py table ROWS: the section of check-code.sh.
#
# Slow copies are blocks that call moat's judge, and those that only lead to such blocks or come from them.
# HOT counts instructions outside of them: of one round of the innermost loop, or of the kernel if it has
# none; WHOLE is those of the kernel in any case, and RUNS in how many pieces they are, with slow copies
# between. A loop is unrolled so often as the machine code has one of its accesses of memory, whose lines in
# the PTX are known; the texts of these accesses say which loops of two variants are the same.
import collections
import math
import re
import statistics
import sys

VARIANTS = {'': 'own', '__moat_check_': 'check', '__moat_rest_': 'rest'}
LIBRARIES = ('cub', 'thrust')  # whose many kernels are summed up only
JUDGE = '__moat_check_call'
ENDS = {'EXIT', 'RET', 'BRA', 'BRX', 'JMP', 'JMX', 'KILL', 'BPT'}


class Instruction:
    def __init__(self, guard, text, line):
        self.guarded, self.text, self.line = bool(guard), text, line
        self.op = text.split()[0].split('.')[0]
        target = re.search(r'`\(([^)]*)\)', text)
        self.target = target[1] if target else ''


def functions(path):
    """Returns the instructions of each function and where its labels are."""
    found, name, line = {}, None, 0
    for text in open(path):
        if text.startswith('.text.') and text.rstrip().endswith(':'):
            name, line = text.strip()[6:-1], 0
            found[name] = ([], {})
        elif name and (match := re.match(r'\s*//## File .*, line (\d+)', text)):
            line = int(match[1])
        elif name and (match := re.match(r'(\.L_\w+):', text)):
            found[name][1][match[1]] = len(found[name][0])
        elif name and (match := re.match(r'\s*/\*[0-9a-f]+\*/\s+(@!?U?P\w+\s+)?(.*?)\s*;', text)):
            found[name][0].append(Instruction(match[1], match[2], line))
    for code, _ in found.values():  # padding and the jump to itself before it
        while code and (code[-1].op == 'NOP' or (code[-1].op == 'BRA' and not code[-1].guarded and
                                                 len(code) > 1 and code[-2].op in ENDS | {'NOP'})):
            code.pop()
    return found


def blocks(code, labels):
    """Returns a list of (first, end) and the successors of each block."""
    starts = {0} | {at for at in labels.values() if at < len(code)}
    starts |= {i + 1 for i, insn in enumerate(code) if insn.op in ENDS and i + 1 < len(code)}
    starts = sorted(starts)
    at = {first: n for n, first in enumerate(starts)}
    ranges = list(zip(starts, starts[1:] + [len(code)]))
    after = []
    for n, (_, end) in enumerate(ranges):
        last, to = code[end - 1], set()
        if last.op == 'BRA' and labels.get(last.target) in at:
            to.add(at[labels[last.target]])
        if (last.op not in ENDS or last.guarded or ', ' in last.text.split('`')[0]) and n + 1 < len(ranges):
            to.add(n + 1)
        after.append(to)
    return ranges, after


def slow(code, ranges, after):
    before = [set() for _ in ranges]
    for n, to in enumerate(after):
        for m in to:
            before[m].add(n)
    cold = {n for n, (first, end) in enumerate(ranges)
            if any(insn.op == 'CALL' and insn.target == JUDGE for insn in code[first:end])}
    while True:
        more = {n for n, (_, end) in enumerate(ranges) if n not in cold and
                ((before[n] and before[n] <= cold) or
                 (after[n] and after[n] <= cold and code[end - 1].op not in ('EXIT', 'RET')))}
        if not more:
            return cold
        cold |= more


def loops(after, cold):
    """Returns the innermost natural loops of what is not slow, as sets of blocks."""
    hot = [n for n in range(len(after)) if n not in cold]
    if not hot:
        return []
    before = {n: [m for m in hot if n in after[m]] for n in hot}
    over = {n: set(hot) for n in hot}
    over[hot[0]] = {hot[0]}
    changed = True
    while changed:
        changed = False
        for n in hot[1:]:
            new = set.intersection(*(over[m] for m in before[n])) | {n} if before[n] else {n}
            changed |= new != over[n]
            over[n] = new
    found = collections.defaultdict(set)
    for n in hot:
        for head in after[n] & over[n]:
            body, work = {head}, [n]
            while work:
                m = work.pop()
                if m not in body:
                    body.add(m)
                    work += before[m]
            found[head] |= body
    return [body for head, body in found.items() if not any(h in body for h in found if h != head)]


class Function:
    def __init__(self, code, labels, texts):
        ranges, after = blocks(code, labels)
        cold = slow(code, ranges, after)
        self.n = len(code)
        self.calls = sum(insn.op == 'CALL' for insn in code)
        self.hot = sum(end - first for n, (first, end) in enumerate(ranges) if n not in cold)
        self.runs = sum(n not in cold and (n == 0 or n - 1 in cold) for n in range(len(ranges)))
        self.loops = []  # (instructions, how often it has each access)
        for body in loops(after, cold):
            insns = [insn for n in body for insn in code[slice(*ranges[n])]]
            has = collections.Counter(texts[insn.line] for insn in insns if insn.line in texts and
                                      re.match(r'(LD|ST|ATOM|RED)(G|S|L|U|$)?', insn.op) and
                                      (insn.op not in ('LDL', 'STL') or '.local' in texts[insn.line]))
            if has:
                self.loops.append((len(insns), has))


def accesses(path):
    """Returns the texts of accesses of memory by line."""
    found = {}
    for n, text in enumerate(open(path), 1):
        text = ' '.join(text.split())
        match = re.match(r'(?:@!?%\w+ )?((ld|st|atom|red)\.(?!param|const).*)', text)
        if match and 'volatile' not in text:
            found[n] = match[1]
    return found


def rounds(has, wanted):
    return max((times for text, times in has.items() if text in wanted), default=0)


def registers(log):
    """Returns [registers, bytes spilled] of each kernel."""
    said, entry, where = {}, None, None
    for line in open(log):
        if match := re.search(r"Compiling entry function '(.*?)'", line):
            entry = match[1]
        elif match := re.search(r'Function properties for (\S+)', line):
            where = match[1]
        elif where == entry and (match := re.search(r'(\d+) bytes spill stores, (\d+) bytes spill', line)):
            said[entry] = [0, int(match[1]) + int(match[2])]
        elif entry and (match := re.search(r'Used (\d+) registers', line)):
            said.setdefault(entry, [0, 0])[0] = int(match[1])
            entry = None
    return said


def limits(ptx, log):
    """Prints what check_apart.c allows the variants of kernels, and those whose code is marked as cold."""
    said = registers(log)
    for match in re.finditer(r'\.entry (\S+?)\(([^{]*)', open(ptx).read()):
        bound = re.search(r'\.(?:maxntid|reqntid) (\d+)(?:, (\d+))?(?:, (\d+))?', match[2])
        threads = math.prod(int(n) for n in bound.groups() if n) if bound else 1024
        each = -(-threads // 128) * 128
        blocks = min(65536 // (each * -(-said[match[1]][0] // 8) * 8), 2048 // each)
        beside = 65536 // (each * blocks) // 8 * 8 if threads < 1024 and blocks else 0
        print(match[1], *(n if n < 255 else 0 for n in (65536 // threads // 8 * 8, beside)))


def kernels(name, *files):
    made, said = {}, {}
    for at in range(0, len(files), 3):
        texts = accesses(files[at])
        for symbol, (code, labels) in functions(files[at + 1]).items():
            made[symbol] = Function(code, labels, texts)
        said |= registers(files[at + 2])
    for own in sorted(said):
        if own.startswith('__moat_') or own not in made:
            continue
        best = max(made[own].loops, default=None,
                   key=lambda loop: (max(loop[1].values()), sum(loop[1].values())))
        for prefix, variant in VARIANTS.items():
            f = made.get(prefix + own)
            if not f or prefix + own not in said:
                continue
            hot = f.hot
            if best:
                wanted = set(best[1])
                same = [(n / rounds(has, wanted), -rounds(has, wanted)) for n, has in f.loops
                        if rounds(has, wanted) and len(wanted & set(has)) * 2 >= len(wanted)]
                hot = min(same, key=lambda loop: loop[1])[0] if same else math.nan
            print(name, own, variant, f.n, f'{hot:.2f}', *said[prefix + own], f.calls, f.hot, f.runs,
                  'loop' if best else 'kernel')


def short(symbol):
    match = re.match(r'_ZN?(?:\d+_GLOBAL__N_\w+?)?(\d+)', symbol)
    return symbol[match.end():match.end() + int(match[1])] if match else symbol


def table(path):
    rows = collections.defaultdict(dict)
    for line in open(path):
        name, kernel, variant, *numbers, unit = line.split()
        rows[name, kernel, unit][variant] = [float(n) for n in numbers]
    print('| over the kernel itself | kernels | geometric mean | median | worst |')
    print('| --- | ---: | ---: | ---: | ---: |')
    for variant in 'check', 'rest':
        for what, at in ('hot code', 1), ('all but slow copies', 5), ('all code', 0):
            ratios = {key: v[variant][at] / v['own'][at] for key, v in rows.items()
                      if variant in v and v['own'][at] and not math.isnan(v[variant][at] / v['own'][at])}
            worst = max(ratios, key=ratios.get)
            mean = math.exp(statistics.fmean(map(math.log, ratios.values())))
            print(f'| {variant}: {what} | {len(ratios)} | {mean:.2f} | '
                  f'{statistics.median(ratios.values()):.2f} | {ratios[worst]:.2f} ({worst[0]}) |')
        more = {key: v[variant][2] - v['own'][2] for key, v in rows.items() if variant in v}
        worst = max(more, key=more.get)
        print(f'| {variant}: registers more | {len(more)} | '
              f'{statistics.fmean(more.values()):.1f} (average) | '
              f'{statistics.median(more.values()):.0f} | {more[worst]:.0f} ({worst[0]}) |')
        runs = {key: v[variant][6] for key, v in rows.items() if variant in v}
        worst = max(runs, key=runs.get)
        print(f'| {variant}: pieces of it between slow copies | {len(runs)} | '
              f'{statistics.fmean(runs.values()):.1f} (average) | '
              f'{statistics.median(runs.values()):.0f} | {runs[worst]:.0f} ({worst[0]}) |')
        spilled = {key: v[variant][3] for key, v in rows.items() if variant in v}
        worst = max(spilled, key=spilled.get)
        print(f'| {variant}: bytes spilled | {len(spilled)} | '
              f'{statistics.fmean(spilled.values()):.1f} (average) | '
              f'{statistics.median(spilled.values()):.0f} | {spilled[worst]:.0f} ({worst[0]}) |')
    print('\n| program | kernel | hot | own | check | rest | times | times | code | check | rest | '
          'registers | check | rest | spilled |')
    print('| --- | --- | --- |' + ' ---: |' * 12)

    def cell(v, variant, at):
        return f'{v[variant][at]:.0f}' if variant in v and not math.isnan(v[variant][at]) else ''

    def times(v, variant):
        if variant not in v or math.isnan(v[variant][1] / v['own'][1]):
            return ''
        return f'{v[variant][1] / v["own"][1]:.2f}'
    for (name, kernel, unit), v in sorted(rows.items()):
        if 'check' not in v or name in LIBRARIES:
            continue
        cells = [cell(v, x, 1) for x in ('own', 'check', 'rest')] + [times(v, x) for x in ('check', 'rest')]
        cells += [cell(v, x, at) for at in (0, 2) for x in ('own', 'check', 'rest')]
        print(f'| {name} | {short(kernel)} | {unit} |', ' | '.join(cells),
              f'| {max(v[x][3] for x in v if x != "own"):.0f} |')


if sys.argv[1] == 'kernels':
    kernels(*sys.argv[2:])
elif sys.argv[1] == 'limits':
    limits(*sys.argv[2:])
else:
    table(sys.argv[2])
