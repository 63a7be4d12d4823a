# SPDX-License-Identifier: MIT
# shadow_cases.py LIST good|bad LOG: compares the reports of one process that ran all cases of
# test/guard/shadow_errors.cu with LIST, what `shadow_errors list` prints. A report belongs to the case whose
# function is in the stack of its launch, above check_main. Prints a line for each failure, and PASSED FAILED.
import re
import sys

ENDS = {'char': 'bytes', 'short': 'shorts', 'int': 'ints', 'long': 'longs', 'int4': 'vectors'}


def case_of(frame):
    ends = re.search(r'\bends<(\w+)>', frame)
    if ends:
        return ENDS.get(ends.group(1), ends.group(1))
    return re.sub(r'^(?:\w+ )*?(\w+)\(bool\).*', r'\1', frame)


def reports(log):
    """The types of the reports of each case, in order."""
    found, kind, frames = {}, None, []
    for line in log:
        start = re.search(r'ERROR: moat: ([a-z-]+)', line)
        frame = re.match(r' +#\d+ (.*)', line)
        if start:
            kind, frames = start.group(1), []
        elif frame and kind and 'check_main' in frame.group(1):
            found.setdefault(case_of(frames[-1]) if frames else '?', []).append(kind)
            kind = None
        elif frame:
            frames.append(frame.group(1))
    return found


def main():
    listed, which, path = sys.argv[1:]
    with open(path, errors='replace') as f:
        lines = f.read().splitlines()
    found, passed, failed = reports(lines), 0, 0
    with open(listed) as f:
        cases = [line.rstrip('\n').split('\t') for line in f]
    if 'ended' not in lines or not any('kernel launches checked' in line for line in lines):
        print('the cases did not come to their end, or were not checked:', *lines[-8:], sep='\n    | ')
        failed += 1
    for name, types in cases:
        kinds = found.pop(name, [])
        said = ' '.join(k for i, k in enumerate(kinds) if not i or kinds[i - 1] != k)
        silent = which == 'good' or types == 'missed'
        if (silent and not said) or (not silent and re.fullmatch(types, said)):
            passed += 1
        else:
            failed += 1
            wanted = 'nothing' if silent else types
            print(f'FAIL {which} {name}: reported {said or "nothing"}, expected {wanted}')
    for name, kinds in found.items():
        failed += 1
        print(f'FAIL {which}: {kinds} in no case ({name})')
    print(passed, failed)


main()
