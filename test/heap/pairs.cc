// SPDX-License-Identifier: MIT
// Pairs for the operators of C++, as heap_pairs.def has them for the functions of C. Rows: name, CWE, type,
// who finds it, bad, good.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

static volatile int sink;

template <class P> static P *hide(P *p)
{
    __asm__ volatile("" : "+r"(p));
    return p;
}

struct node {
    int value[5];
    virtual ~node() {}
};

struct alignas(64) wide {
    char bytes[64];
};

struct row {
    const char *name;
    int cwe;
    const char *type, *found;
    void (*bad)(), (*good)();
};

static const row rows[] = {
    {"new_char", 122, "heap-buffer-overflow", "BOTH", [] { char *p = hide(new char[11]); p[11] = 0; delete[] p; },
     [] { char *p = hide(new char[11]); p[10] = 0; delete[] p; }},
    {"new_int", 122, "heap-buffer-overflow", "BOTH", [] { int *p = hide(new int[10]); p[10] = 1; delete[] p; },
     [] { int *p = hide(new int[10]); p[9] = 1; delete[] p; }},
    {"new_object", 122, "heap-buffer-overflow", "BOTH",
     [] { node *p = hide(new node); std::memset(hide(p->value), 0, sizeof(node)); p->~node(); ::operator delete(p); },
     [] { node *p = hide(new node); std::memset(hide(p->value), 0, sizeof p->value); delete p; }},
    {"new_nothrow", 122, "heap-buffer-overflow", "BOTH",
     [] { char *p = hide(new (std::nothrow) char[3]); p[3] = 0; delete[] p; },
     [] { char *p = hide(new (std::nothrow) char[3]); p[2] = 0; delete[] p; }},
    {"new_aligned", 122, "heap-buffer-overflow", "BOTH", [] { wide *p = hide(new wide); p->bytes[64] ^= 1; delete p; },
     [] { wide *p = hide(new wide); p->bytes[63] ^= 1; delete p; }},
    {"new_aligned_array", 124, "heap-buffer-underflow", "BOTH",
     [] { wide *p = hide(new wide[3]); reinterpret_cast<char *>(p)[-1] ^= 1; delete[] p; },
     [] { wide *p = hide(new wide[3]); p[2].bytes[63] ^= 1; delete[] p; }},
    {"vector_data", 122, "heap-buffer-overflow", "BOTH",
     [] { std::vector<int> v(16); hide(v.data())[16] = 1; }, [] { std::vector<int> v(16); hide(v.data())[15] = 1; }},
    {"vector_before", 124, "heap-buffer-underflow", "BOTH",
     [] { std::vector<long> v(16); hide(v.data())[-1] ^= 1; }, [] { std::vector<long> v(16); hide(v.data())[0] ^= 1; }},
    {"string_grown", 122, "heap-buffer-overflow", "BOTH",
     [] { std::string s(100, 'x'); std::strcpy(hide(&s[0]), std::string(101, 'y').c_str()); },
     [] { std::string s(100, 'x'); std::strcpy(hide(&s[0]), std::string(100, 'y').c_str()); }},
    {"unique_ptr", 122, "heap-buffer-overflow", "BOTH",
     [] { auto p = std::make_unique<char[]>(20); hide(p.get())[20] = 2; },
     [] { auto p = std::make_unique<char[]>(20); hide(p.get())[19] = 1; }},
    {"delete_twice", 415, "double-free", "BOTH", [] { int *p = hide(new int); delete p; delete hide(p); },
     [] { int *p = hide(new int); delete p; p = nullptr; delete hide(p); }},
    {"delete_array_twice", 415, "double-free", "BOTH",
     [] { int *p = hide(new int[9]); delete[] p; delete[] hide(p); }, [] { int *p = hide(new int[9]); delete[] p; }},
    {"two_owners", 415, "double-free", "BOTH",
     [] { int *p = hide(new int); { std::unique_ptr<int> a(p); } std::unique_ptr<int> b(hide(p)); },
     [] { int *p = hide(new int); std::unique_ptr<int> a(p); std::unique_ptr<int> b(std::move(a)); }},
    {"delete_local", 590, "bad-free", "BOTH", [] { alignas(16) static int x[8]; delete hide(&x[4]); },
     [] { int *x = hide(new int); delete x; }},
    {"delete_inside", 761, "bad-free", "BOTH", [] { int *p = hide(new int[20]); delete[] hide(p + 8); },
     [] { int *p = hide(new int[20]); delete[] p; }},
    {"write_after_delete", 416, "heap-use-after-free", "LAZY",
     [] { int *p = hide(new int[4]); delete[] p; hide(p)[1] = 1; }, [] { int *p = hide(new int[4]); p[1] = 1; delete[] p; }},
    {"new_then_free", 762, "alloc-dealloc-mismatch", "BOTH", [] { int *p = hide(new int); std::free(hide(p)); },
     [] { int *p = hide(new int); delete p; }},
    {"malloc_then_delete", 762, "alloc-dealloc-mismatch", "BOTH",
     [] { int *p = hide(static_cast<int *>(std::malloc(40))); delete hide(p); },
     [] { int *p = hide(static_cast<int *>(std::malloc(40))); std::free(p); }},
    {"array_then_delete", 762, "alloc-dealloc-mismatch", "BOTH", [] { int *p = hide(new int[500]); delete hide(p); },
     [] { int *p = hide(new int[500]); delete[] p; }},
    {"new_then_delete_array", 762, "alloc-dealloc-mismatch", "BOTH", [] { int *p = hide(new int); delete[] hide(p); },
     [] { int *p = hide(new int[1]); delete[] p; }},
    {"new_then_realloc", 762, "alloc-dealloc-mismatch", "BOTH",
     [] { char *p = hide(new char[30]); std::free(std::realloc(hide(p), 300)); },
     [] { char *p = hide(static_cast<char *>(std::malloc(30))); std::free(std::realloc(p, 300)); }},
    {"thread_vector", 122, "heap-buffer-overflow", "BOTH",
     [] { std::vector<char> v(33); std::thread([&] { hide(v.data())[33] = 2; }).join(); },
     [] { std::vector<char> v(33); std::thread([&] { hide(v.data())[32] = 1; }).join(); }},
    {"bad_alloc", 122, "heap-buffer-overflow", "BOTH",
     [] { try { delete[] hide(new char[size_t(-1) / 4]); } catch (std::bad_alloc &) { char *p = hide(new char[6]); p[6] = 0; delete[] p; } },
     [] { try { delete[] hide(new char[size_t(-1) / 4]); } catch (std::bad_alloc &) { char *p = hide(new char[6]); p[5] = 0; delete[] p; } }},
};

int main(int argc, char **argv)
{
    for (const row &r : rows) {
        if (argc == 2)
            std::printf("%s %d %s %s\n", r.name, r.cwe, r.type, r.found);
        else if (argc == 3 && std::strcmp(argv[2], r.name) == 0)
            (argv[1][0] == 'b' ? r.bad : r.good)();
    }
    return 0;
}
