# SPDX-License-Identifier: MIT
# Tables from cpu_sizes.tsv and the rows that cpu.sh has gathered.
#   table   which one: summary, kernels, plain, threads, before
#   least, least_launch   what a kernel must have to be in it: thread instructions, and seconds per launch

function sort(a, n,    i, j, x) {
    for (i = 2; i <= n; i++) {
        x = a[i]
        for (j = i - 1; j >= 1 && a[j] > x; j--)
            a[j + 1] = a[j]
        a[j + 1] = x
    }
}
# What a set of rows took in each run: the median, or the worst (1) or best (2).
function time_of(key, which,    i, n, a) {
    for (i = 0; (key, i) in seconds; i++)
        a[++n] = seconds[key, i]
    sort(a, n)
    return !n ? 0 : which ? a[which == 1 ? n : 1] : n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
}

# --- many figures, and a line on them ---------------------------------------------------------------------------

function add_figure(x) {
    figures[++nfigures] = x
}
function average(    i, sum) {
    for (i = 1; i <= nfigures; i++)
        sum += figures[i]
    return sum / nfigures
}
function geometric(    i, sum) {
    for (i = 1; i <= nfigures; i++)
        sum += log(figures[i])
    return exp(sum / nfigures)
}
function count_within(target, large_is_good,    i, n) {
    for (i = 1; i <= nfigures; i++)
        n += large_is_good ? figures[i] >= target : figures[i] <= target
    return n + 0
}
function line(what, format, target, large_is_good,    middle) {
    if (!nfigures)
        return
    sort(figures, nfigures)
    middle = figures[int((nfigures + 1) / 2)] / 2 + figures[int(nfigures / 2) + 1] / 2
    printf "| %s | %d | " format " | " format " | " format " | " format " |", what, nfigures, average(), geometric(), middle,
        figures[large_is_good ? 1 : nfigures]
    if (target)
        printf " %s | %d of %d |\n", target, count_within(target, large_is_good), nfigures
    else
        print " | |"
    nfigures = 0
}

# --- kernels ----------------------------------------------------------------------------------------------------

function kind(key) {
    return active[key] < 50 ? "divergent" : arithmetic[program[key]] ? "arithmetic" : "usual"
}
function rate_line(which, what, target,    i) {
    for (i = 1; i <= nkernels; i++)
        if (kind(kernels[i]) == which)
            add_figure(rate[kernels[i]])
    line(what, "%.0f", target, 1)
}
function demangled(key,    name, command) {
    name = key
    sub(/^[^ ]* /, "", name)
    command = "c++filt '" name "' 2>/dev/null"
    command | getline name
    close(command)
    sub(/\(.*/, "", name)
    return name
}
function print_kernels(    i, key) {
    print "Kernels by processor time on one core:"
    print ""
    print "| program | kernel | million thread instructions | ms, median | ms, worst | million per second | lanes active | branches that diverge | kind |"
    print "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for (i = 1; i <= nkernels; i++) {
        key = kernels[i]
        printf "| %s | `%s` | %.1f | %.1f | %.1f | %.0f | %.0f%% | %.0f%% | %s |\n", program[key], demangled(key),
            threads[key] / 1e6, time_of("one " key) * 1e3, time_of("one " key, 1) * 1e3, rate[key], active[key],
            branches[key] ? 100 * divergent[key] / branches[key] : 0, kind(key)
    }
}

# --- programs against something ---------------------------------------------------------------------------------

# The programs for which both were measured: their ratio, first over second, as rows or as figures.
function compare(first, second, rows, which,    i, a, b) {
    for (i = 1; i <= nprograms; i++) {
        a = time_of(first " " programs[i], which)
        b = time_of(second " " programs[i], which)
        if (!a || !b)
            continue
        if (rows)
            printf "| %s | %.1f | %.1f | %.1f | %.1f | %.2f |\n", programs[i], a * 1e3, time_of(first " " programs[i], 1) * 1e3,
                b * 1e3, time_of(second " " programs[i], 1) * 1e3, a / b
        else
            add_figure(a / b)
    }
}
function print_comparison(what, first, first_name, second, second_name, ratio) {
    print what
    print ""
    printf "| program | %s, ms, median | worst | %s, ms, median | worst | %s |\n", first_name, second_name, ratio
    print "| --- | --- | --- | --- | --- | --- |"
    compare(first, second, 1)
}
function print_summary() {
    print "| | figures | average | geometric mean | median | worst | target | within it |"
    print "| --- | --- | --- | --- | --- | --- | --- | --- |"
    rate_line("usual", "million thread instructions per second, at least half the lanes active", 500)
    rate_line("arithmetic", "the same, arithmetic kernels", 1500)
    rate_line("divergent", "the same, less than half the lanes active", 100)
    compare("cpu", "plain", 0)
    line("times as long as plain C at -O2", "%.2f", 10, 0)
    compare("wall1", "wall2", 0)
    line("times as fast on two threads as on one, a program's kernels", "%.2f", 1.8, 1)
    compare("wall1", "wall2", 0, 2)
    line("the same by the best run of each, which others on the machine disturb least", "%.2f", 1.8, 1)
    compare("cpu", "before", 0)
    line("times as long as with an earlier build", "%.3f", 1.05, 0)
    compare("cpu", "before", 0, 2)
    line("the same by the best run of each", "%.3f", 1.05, 0)
    compare("lanes-avx2", "cpu", 0)
    line("times as long with `--cpu-lanes=avx2`", "%.2f", 0, 0)
    compare("lanes-plain", "cpu", 0)
    line("times as long with `--cpu-lanes=plain`", "%.2f", 0, 0)
}

FILENAME ~ /sizes\.tsv$/ {
    arithmetic[$1] = $NF == "arithmetic"
    next
}
$1 == "count" {
    key = $3 " " $4
    if (!(key in program)) {
        all[++nall] = key
        program[key] = $3
    }
    if (!seen[$3]++)
        programs[++nprograms] = $3
    warps[key] += $7
    threads[key] += $8
    branches[key] += $9
    divergent[key] += $10
    launches[key] += $11
}
$1 == "one" {
    seconds["one " $3 " " $4, $2] += $6
    seconds["cpu " $3, $2] += $6
    seconds["wall1 " $3, $2] += $5
}
$1 == "two" { seconds["wall2 " $3, $2] += $5 }
$1 == "plain" || $1 == "before" || $1 ~ /^lanes-/ { seconds[$1 " " $3, $2] += $6 }

END {
    for (i = 1; i <= nall; i++) {
        key = all[i]
        time = time_of("one " key)
        if (threads[key] < least || time < least_launch * launches[key])
            continue
        kernels[++nkernels] = key
        rate[key] = threads[key] / time / 1e6
        active[key] = 100 * threads[key] / (32 * warps[key])
    }
    if (table == "summary")
        print_summary()
    else if (table == "kernels")
        print_kernels()
    else if (table == "plain")
        print_comparison("The kernels of a program on one core, and the same work in plain C (`bench/cpu_kernels`) at -O2:",
            "cpu", "CPU device", "plain", "plain C", "times")
    else if (table == "before")
        print_comparison("The kernels of a program on one core, and with an earlier build, in turns:", "cpu", "now", "before", "before", "times")
    else
        print_comparison("The kernels of a program on one thread and on two, by the clock: from the start of each to its end, added up. " \
            "What the host does between them is left out; kernels of several streams that run at once count each:",
            "wall1", "one", "wall2", "two", "times faster")
}
