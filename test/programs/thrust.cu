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

static std::vector<int> host(const thrust::device_vector<int> &from, size_t count)
{
    std::vector<int> to(count);
    thrust::copy(from.begin(), from.begin() + count, to.begin());
    return to;
}

static long check_sort(const std::vector<int> &in)
{
    thrust::device_vector<int> keys(in.begin(), in.end()), places(in.size());
    std::vector<int> expected(in), order(in.size());
    thrust::sequence(places.begin(), places.end());
    thrust::stable_sort_by_key(keys.begin(), keys.end(), places.begin());
    for (size_t i = 0; i < order.size(); i++)
        order[i] = (int)i;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return in[a] < in[b]; });
    std::sort(expected.begin(), expected.end());
    long errors = program_compare(host(keys, in.size()), expected) + program_compare(host(places, in.size()), order);
    keys.assign(in.begin(), in.end());
    thrust::sort(keys.begin(), keys.end(), thrust::greater<int>());
    std::reverse(expected.begin(), expected.end());
    return errors + program_compare(host(keys, in.size()), expected);
}

static long check_scan(const std::vector<int> &in)
{
    thrust::device_vector<int> from(in.begin(), in.end()), to(in.size());
    std::vector<int> expected(in.size());
    thrust::inclusive_scan(from.begin(), from.end(), to.begin());
    for (size_t i = 0, sum = 0; i < in.size(); i++)
        expected[i] = (int)(sum += in[i]);
    long errors = program_compare(host(to, in.size()), expected);
    errors += thrust::reduce(from.begin(), from.end()) != expected.back();
    thrust::exclusive_scan(from.begin(), from.end(), to.begin(), 5);
    for (size_t i = in.size(); i-- > 0;)
        expected[i] = i ? expected[i - 1] + 5 : 5;
    return errors + program_compare(host(to, in.size()), expected);
}

// Sums and numbers of equal keys that stand together, after sorting.
static long check_keys(const std::vector<int> &in)
{
    std::vector<int> small(in);
    std::map<int, int> sums;
    for (int &key : small)
        key = (key % KEYS + KEYS) % KEYS;
    for (size_t i = 0; i < in.size(); i++)
        sums[small[i]] += in[i];
    thrust::device_vector<int> keys(small.begin(), small.end()), values(in.begin(), in.end());
    thrust::device_vector<int> some(KEYS), totals(KEYS), ends(KEYS), counts(KEYS);
    thrust::sort_by_key(keys.begin(), keys.end(), values.begin());
    auto end = thrust::reduce_by_key(keys.begin(), keys.end(), values.begin(), some.begin(), totals.begin());
    size_t different = end.first - some.begin();
    std::vector<int> expected_keys, expected_sums, expected_counts(KEYS);
    for (auto &sum : sums)
        expected_keys.push_back(sum.first), expected_sums.push_back(sum.second);
    for (int key : small)
        expected_counts[key]++;
    long errors = (different != sums.size()) + program_compare(host(some, different), expected_keys) +
                  program_compare(host(totals, different), expected_sums);
    thrust::counting_iterator<int> numbers(0);
    thrust::upper_bound(keys.begin(), keys.end(), numbers, numbers + KEYS, ends.begin());
    thrust::adjacent_difference(ends.begin(), ends.end(), counts.begin());
    errors += program_compare(host(counts, KEYS), expected_counts);
    size_t left = thrust::unique(keys.begin(), keys.end()) - keys.begin();
    return errors + (left != different) + program_compare(host(keys, left), expected_keys);
}

int main(int argc, char **argv)
{
    long count = 3000, repeats = 1;
    program_arguments(argc, argv, {{"count", &count, 1, 1 << 26}, {"repeats", &repeats, 1, 100000}});
    std::vector<int> in = program_numbers<int>(count, -1000, 1000, 1);
    long errors = 0;
    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        errors += check_sort(in) + check_scan(in) + check_keys(in);
    program_stop(start);
    return program_result("thrust", errors);
}
