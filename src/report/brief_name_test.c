// SPDX-License-Identifier: MIT
#include "report/brief_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#define A10 "aaaaaaaaaa"
#define A100 A10 A10 A10 A10 A10 A10 A10 A10 A10 A10
#define A90 A10 A10 A10 A10 A10 A10 A10 A10 A10

static void good_names(void **state)
{
    static const struct {
        const char *name, *brief;
    } rows[] = {
        {"scale<float>(float*, int)", "scale<float>(float*, int)"},
        {A100, A100},
        // Versions alone are enough.
        {"thrust::THRUST_300001_SM_900_NS::sort<int>(cub::CUB_300001_SM_900::policy, "
         "cuda::std::__4::tuple<int>, int)",
         "thrust::sort<int>(cub::policy, cuda::std::tuple<int>, int)"},
        // Other words stay: a namespace that only looks like a version, and a type that is one.
        {"a::CUB_::x::THRUST_x::__a::__::f<" A100 ">(b::__4)",
         "a::CUB_::x::THRUST_x::__a::__::f<...>(b::__4)"},
        {"void cub::f<g<" A100 ">::h, (k)0, int>::i<3>(int)", "void cub::f<...>::i<3>(int)"},
        {"a::operator< <" A100 ">(int)", "a::operator< <...>(int)"},
        {"a::operator<<<" A100 ">(int)", "a::operator<<<" A100 ">(int)"},
        {"b<" A100 "operator->>::operator->() const", "b<...>::operator->() const"},
        {"oob<" A90 ">::operator()(int, long) const", "oob<...>::operator()(int, long) const"},
        // Parameters go if that is not enough.
        {"f(void (*)(" A90 "), g(h))", "f(...)"},
        {"(anonymous namespace)::f(" A90 ")::{lambda(int)#1}::operator()(int) const",
         "(anonymous namespace)::f(...)::{lambda(int)#1}::operator()(int) const"},
        // Nothing closes these.
        {"f<" A100, "f<" A100},
        {"f<(" A100 ">)", "f<(" A100 ">)"},
        // These are still mangled.
        {"_ZN3cub17CUB_300001_SM_9006detail9transform16transform_kernelITkN" A100,
         "cub::detail::transform::transform_kernel<...>"},
        {"_Z6kernelITk" A100, "kernel<...>"},
        {"_ZNK4a_ns3boxclE" A100, "a_ns::box..."},
        {"_ZN4a_ns5scaleE" A100, "a_ns::scale(...)"},
        {"_ZSt4sortI" A100, "std::sort<...>"},
        {"_ZN12_GLOBAL__N_15scaleITk" A100, "_GLOBAL__N_1::scale<...>"},
        {"_ZL5scalePf" A100, "scale(...)"},
        {"_Z999999999999999999999999f" A100, "_Z999999999999999999999999f" A10 A10 A10 "aaa..."},
        {"_Z" A100, "_Z" A10 A10 A10 A10 A10 "aaaaaaaa..."},
    };
    char buffer[400];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(brief_name(rows[i].name, buffer, sizeof buffer), rows[i].brief);
}

static void bad_room(void **state)
{
    char buffer[20];
    assert_string_equal(brief_name("f<" A100 ">", buffer, sizeof buffer), "f<" A100 ">");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(good_names), cmocka_unit_test(bad_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
