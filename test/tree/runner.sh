#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# The test runner finds tests, counts them and notices each way to fail.
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
mkdir -p "$T"/test/{some,gpu} "$T"/b/{bin,test,fuzz} "$T"/b/asan/{bin,test}
cp test/run test/run-cmd "$T/test/"
cd "$T"
unset MOAT BUILD

script() {  # script NAME LINE...
    printf '%s\n' '#!/bin/sh' "${@:2}" >"$1"
    chmod +x "$1"
}
expect() {  # expect LAST-LINE STATUS ARG...: of a run of the runner
    local last=$1 status=$2 actual=0
    shift 2
    test/run "$@" >log 2>&1 || actual=$?
    if [ "$(tail -n1 log)" != "$last" ] || [ $actual != "$status" ]; then
        cat log
        echo "expected status $status and \"$last\"; status was $actual"
        exit 1
    fi
}

expect '0 passed, 0 failed' 1 b
script b/bin/moat 'echo "moat says $*"; echo oops >&2; exit $#'
script test/some/good.sh '[ "$MOAT" = "$PWD/b/bin/moat" ] && [ "$BUILD" = b ]'
expect '1 passed, 0 failed' 0 b
script test/some/long.sh '# tier: all' 'exit 0'
expect '1 passed, 0 failed' 0 b
expect '2 passed, 0 failed' 0 --all b
script test/some/long.sh '[ "$TEST_ALL" = 1 ]'
expect '1 passed, 1 failed' 1 b
expect '2 passed, 0 failed' 0 --all b
script test/some/long.sh '# slow' 'exit 0'
TEST_JOBS=1 expect '2 passed, 0 failed' 0 b
[[ $(head -n 1 log) == *some/long.sh ]] || { cat log; echo 'what is slow is not first'; exit 1; }
rm test/some/long.sh

script test/some/skipped.sh 'echo first' 'echo no such tool' 'exit 77'
expect '1 passed, 0 failed, 1 skipped' 0 b
grep -q '^  some/skipped.sh: no such tool$' log
script test/some/many.sh 'echo "7 passed, 0 failed"'
expect '8 passed, 0 failed, 1 skipped' 0 b
rm test/some/{skipped,many}.sh

script b/test/units_test 'echo "[  PASSED  ] 5 test(s)."'
expect '6 passed, 0 failed' 0 b
script b/test/units_test 'echo "[  PASSED  ] 5 test(s)."' \
    'echo "[  FAILED  ] 2 test(s), listed below:"' 'exit 2'
expect '6 passed, 2 failed' 1 b
grep -q '^FAIL .* units_test: status 2$' log
grep -q PASSED b/test-logs/units_test.log
grep -q "^    all of it: b/test-logs/units_test.log$" log
script b/test/units_test 'echo "[  PASSED  ] 5 test(s)."' 'exit 99'
expect '6 passed, 1 failed' 1 b
script b/test/units_test 'kill -SEGV $$'
expect '1 passed, 1 failed' 1 b
rm b/test/units_test
expect '1 passed, 0 failed' 0 b
[ ! -e b/test-logs ] || { echo 'logs of an earlier run are left'; exit 1; }

script test/some/slow.sh 'sleep 60'
TEST_TIMEOUT=1 expect '0 passed, 1 failed' 1 --only=slow b
grep -q 'slow.sh: stopped after 1 s' log
rm test/some/slow.sh
if [ ! -e /dev/nvidia0 ]; then
    script test/gpu/any.sh 'exit 1'
    expect '1 passed, 0 failed, 1 skipped' 0 b
    rm test/gpu/any.sh
fi

# A second build repeats unit tests, and scripts where it has a sanitizer.
script test/some/good.sh 'exit 0'
script test/some/once.sh '# builds: one' 'exit 0'
cp -r b/bin b/asan/
expect '3 passed, 0 failed' 0 b b/asan
rm test/some/once.sh

printf '%s\n' '# a comment' '$ moat a > /dev/null' '> moat b c' > test/some/say.cmd
expect '1 passed, 1 failed' 1 b
expect '2 passed, 0 failed' 0 --update b
diff test/some/say.cmd - <<'END'
# a comment
$ moat a > /dev/null
> moat b c
moat says b c
2> oops
2> oops
[status 2]
END
expect '2 passed, 0 failed' 0 b
for change in 's/says b c$/says b d/' 's/2> oops/oops/' 's/status 2/status 1/' '$d'; do
    cp test/some/say.cmd saved
    sed -i "$change" test/some/say.cmd
    expect '1 passed, 1 failed' 1 b
    cp saved test/some/say.cmd
done
