# SPDX-License-Identifier: MIT
# frameworks_kernels.py MOAT FOLDER: how long the kernels of test/gpu/frameworks_cases.py run alone, under
# --mode=check and under --mode=fence, and the share that these modes cover. Processes start side by side, and
# are measured one after the other, in turns of their own (--lock). FOLDER keeps what each program said: a
# program whose times are there is not run again. The table goes to standard output. JOBS: programs at a time;
# GPU_SECONDS: after so many no program is started. DEVICE=cpu: on the CPU device, without times, to test this
# script.
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'test', 'gpu'))
sys.dont_write_bytecode = True
import frameworks_check as check  # noqa: E402

CASES = (('torch', 'torch_compile_transformer'), ('triton', 'triton_kernels'), ('cupy', 'cupy_raw'),
         ('torch', 'torch_transformer'), ('torch', 'torch_compile_cnn'), ('cupy', 'cupy_arrays'),
         ('jax', 'jax_jit'))
WAYS = (('alone', []), ('check', ['--mode=check', '--no-torch-alloc']),
        ('fence', ['--mode=fence', '--no-torch-alloc', '--uncovered=allow']))
TAKES, LIMIT, ROUNDS = 25, 110, 10
begin = time.monotonic()
seconds = float(os.environ.get('GPU_SECONDS', 170))
moat, folder = sys.argv[1:3]
device = os.environ.get('DEVICE', 'gpu')
alive = set()


def left():
    return seconds - (time.monotonic() - begin)


def path(case, way, suffix):
    return os.path.join(folder, '%s.%s.%s' % (case, way, suffix))


def run(job):
    case, way, options = job
    times = path(case, way, 'times')
    if os.path.exists(times) or left() < TAKES:
        return
    words = [moat, '--device=' + device, '--format=json', '--log-file=' + path(case, way, 'json')] + options
    if way == 'alone':
        words = [] if device == 'gpu' else [moat, '--device=cpu', '--mode=off']
    words += [sys.executable, check.CASES, case]
    if device == 'gpu':
        words += ['--times', times + '.new', '--rounds', str(ROUNDS), '--lock', os.path.join(folder, 'lock')]
    with open(path(case, way, 'log'), 'w') as log:
        child = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                 start_new_session=True)
    alive.add(child.pid)
    try:
        status = child.wait(timeout=max(1, min(LIMIT, left())))
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        status = child.wait()
    alive.discard(child.pid)
    if status == 0 and os.path.exists(times + '.new'):
        os.rename(times + '.new', times)
    elif status:
        with open(path(case, way, 'log'), errors='replace') as log:
            print('%s, %s: status %d: %s' % (case, way, status, ' '.join(log.read().split('\n')[-3:])),
                  file=sys.stderr)


def load(case, way):
    try:
        with open(path(case, way, 'times')) as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def report(case, way):
    """What a report counted, and the launches of kernels that ran unchecked, by name."""
    file = path(case, way, 'json')
    return check.read_report(file) if os.path.exists(file) else ({}, {})


def covered(times, names):
    """Names and microseconds of the kernels whose names are not among these."""
    full, stems = {check.whole(n) for n in names}, {check.stem(n) for n in names}
    return [(n, t) for n, (_, t) in times.items()
            if check.whole(n) not in full and check.stem(n) not in stems]


def without(times, names):
    """Microseconds of all kernels, and of the covered ones."""
    return sum(t for _, t in times.values()), sum(t for _, t in covered(times, names))


# Triton's compiler names a kernel by its function; in the names of others there are types.
def of_triton(times, names):
    """Microseconds of covered kernels that Triton has compiled, Inductor's among them."""
    return sum(t for n, t in covered(times, names) if re.fullmatch(r'(__moat_[a-z]+_)?[A-Za-z]\w*', n))


def row(case, way, demangle):
    alone, watched = load(case, 'alone'), load(case, way)
    if not alone or not watched:
        return None
    # Check alone names what it did not rewrite; the fence can rewrite the same.
    counts, unchecked = report(case, way)[0], report(case, 'check')[1]
    names = {demangle(n) for n in unchecked}
    all_alone, covered_alone = without(alone, names)
    all_watched, covered_watched = without(watched, names)
    launches = counts.get(way + '_launches', 0)
    bare = sum(counts.get(key, 0) for key in ('check_bare', 'check_unfit', 'fence_uncovered'))
    ratio = covered_watched / covered_alone if covered_alone else None
    triton = of_triton(alone, names) if case.startswith(('torch_compile', 'triton')) else 0
    cells = ['%.2f' % (all_alone / 1000), '%.3f' % (all_watched / all_alone) if all_alone else '',
             '%.3f' % ratio if ratio else '',
             '%.3f' % (of_triton(watched, names) / triton) if triton else '',
             check.share(covered_alone, all_alone), str(launches + bare),
             check.share(launches, launches + bare),
             check.share(counts.get(way + '_proved', 0), launches)]
    return '| %s | %s | %s |' % (case, way, ' | '.join(cells)), ratio


def stop(*_):
    for pid in list(alive):
        os.killpg(pid, signal.SIGKILL)
    tables()
    os._exit(1)


def tables():
    print('%s. %d rounds of each program\'s work, by the tracer of PyTorch or JAX, one program at a time; the'
          ' pool of PyTorch stays. Covered: without the kernels that the report of check names as unchecked.'
          % (check.versions(sys.executable), ROUNDS))
    print()
    print('| program | mode | kernels alone, ms | all kernels, over alone | covered kernels, over alone'
          ' | of these Triton\'s and Inductor\'s | share of kernel time covered | launches | covered'
          ' | of these proved |')
    print('| --- | --- |' + ' ---: |' * 8)
    demangle, ratios = check.demangler(), {}
    for _, case in CASES:
        for way, _ in WAYS[1:]:
            made = row(case, way, demangle)
            if made:
                print(made[0])
                if made[1]:
                    ratios.setdefault(way, []).append((made[1], case))
    for way, values in ratios.items():
        numbers = [value for value, _ in values]
        print('\n%s, covered kernels: %.3f on average, %.3f in the median, %.3f at worst (%s).' % (
            way, statistics.fmean(numbers), statistics.median(numbers), *max(values)))
    sys.stdout.flush()


def main():
    there = [p for p in ('torch', 'triton', 'cupy', 'jax') if check.has(sys.executable, p)]
    if not there:
        print('frameworks_kernels.py: no framework on this machine', file=sys.stderr)
        sys.exit(77)
    signal.signal(signal.SIGTERM, stop)
    jobs = [(case, way, options) for package, case in CASES if package in there for way, options in WAYS]
    with ThreadPoolExecutor(int(os.environ.get('JOBS', 8))) as pool:
        list(pool.map(run, jobs))
    tables()


main()
