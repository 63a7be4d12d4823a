// SPDX-License-Identifier: MIT
// Thrust: sort, sort_by_key, scan, reduce_by_key, unique, and a histogram by sorting, as its manual has it.
#include <thrust/adjacent_difference.h>
#include <thrust/binary_search.h>
#include <thrust/device_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/unique.h>

#include <map>

#include "program.h"

enum { KEYS = 37 };

using Vector = thrust::device_vector<int>;

static std::vector<int> host(const Vector &from, size_t count)
{
    std::vector<int> to(count);
    thrust::copy(from.begin(), from.begin() + count, to.begin());
    return to;
}

// Everything that is computed on the device.
struct Results {
    Vector sorted, order, falling, scanned, scanned_from_5, keys, values;
    Vector different, totals, ends, counts;
    int sum;
    size_t found, left;

    explicit Results(size_t n)
        : sorted(n), order(n), falling(n), scanned(n), scanned_from_5(n), keys(n), values(n), different(KEYS),
          totals(KEYS), ends(KEYS), counts(KEYS)
    {
    }
};

// small: of each number, which key it has. Sums and numbers of equal keys that stand together, after sorting.
static void compute(Results &r, const Vector &in, const Vector &small)
{
    r.sorted = in;
    thrust::sequence(r.order.begin(), r.order.end());
    thrust::stable_sort_by_key(r.sorted.begin(), r.sorted.end(), r.order.begin());
    r.falling = in;
    thrust::sort(r.falling.begin(), r.falling.end(), thrust::greater<int>());
    thrust::inclusive_scan(in.begin(), in.end(), r.scanned.begin());
    thrust::exclusive_scan(in.begin(), in.end(), r.scanned_from_5.begin(), 5);
    r.sum = thrust::reduce(in.begin(), in.end());
    r.keys = small;
    r.values = in;
    thrust::sort_by_key(r.keys.begin(), r.keys.end(), r.values.begin());
    auto end = thrust::reduce_by_key(r.keys.begin(), r.keys.end(), r.values.begin(), r.different.begin(),
                                     r.totals.begin());
    r.found = end.first - r.different.begin();
    thrust::counting_iterator<int> numbers(0);
    thrust::upper_bound(r.keys.begin(), r.keys.end(), numbers, numbers + KEYS, r.ends.begin());
    thrust::adjacent_difference(r.ends.begin(), r.ends.end(), r.counts.begin());
    r.left = thrust::unique(r.keys.begin(), r.keys.end()) - r.keys.begin();
}

static long check_sort(const Results &r, const std::vector<int> &in)
{
    std::vector<int> sorted(in), order(in.size());
    for (size_t i = 0; i < order.size(); i++)
        order[i] = (int)i;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return in[a] < in[b]; });
    std::sort(sorted.begin(), sorted.end());
    long errors =
        program_compare(host(r.sorted, in.size()), sorted) + program_compare(host(r.order, in.size()), order);
    std::reverse(sorted.begin(), sorted.end());
    return errors + program_compare(host(r.falling, in.size()), sorted);
}

static long check_scan(const Results &r, const std::vector<int> &in)
{
    std::vector<int> scanned(in.size()), from_5(in.size());
    int sum = 0;
    for (size_t i = 0; i < in.size(); i++) {
        from_5[i] = sum + 5;
        scanned[i] = sum += in[i];
    }
    return program_compare(host(r.scanned, in.size()), scanned) +
           program_compare(host(r.scanned_from_5, in.size()), from_5) + (r.sum != sum);
}

static long check_keys(const Results &r, const std::vector<int> &in, const std::vector<int> &small)
{
    std::map<int, int> sums;
    std::vector<int> keys, totals, counts(KEYS);
    for (size_t i = 0; i < in.size(); i++) {
        sums[small[i]] += in[i];
        counts[small[i]]++;
    }
    for (auto &sum : sums) {
        keys.push_back(sum.first);
        totals.push_back(sum.second);
    }
    if (r.found != sums.size() || r.left != sums.size())
        return 1;
    return program_compare(host(r.different, r.found), keys) +
           program_compare(host(r.totals, r.found), totals) + program_compare(host(r.counts, KEYS), counts) +
           program_compare(host(r.keys, r.left), keys);
}

int main(int argc, char **argv)
{
    long count = 3000, repeats = 1;
    program_arguments(argc, argv, {{"count", &count, 1, 1 << 26}, {"repeats", &repeats, 1, 100000}});
    std::vector<int> in = program_numbers<int>(count, -1000, 1000, 1), small(in);
    for (int &key : small)
        key = (key % KEYS + KEYS) % KEYS;
    Vector device_in(in.begin(), in.end()), device_small(small.begin(), small.end());
    Results r(in.size());
    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        compute(r, device_in, device_small);
    program_stop(start);
    return program_result("thrust", check_sort(r, in) + check_scan(r, in) + check_keys(r, in, small));
}
