// SPDX-License-Identifier: MIT
// Kernels that call malloc and free, as PTX, for programs that test --mode=canary.
//
//   take   each thread: p[i] = malloc(size), and writes its first and last byte
//   give   each thread: free(p[i])
//   write  one thread: q = malloc(size); flips q[at]; frees q before or after, by `when`; sets *flag
//   twice  one thread: q = malloc(size), and frees it `times` times
//   both   two threads: the first makes a buffer, then the threads below `givers` free it
//   fill   one thread: mallocs until there is no more, counts in *count, and frees all of it
#ifndef KHEAP_KERNELS_H
#define KHEAP_KERNELS_H

#define KHEAP_MALLOC(to, size)          \
    "    {\n"                           \
    "    .param .b64 a;\n"              \
    "    .param .b64 b;\n"              \
    "    st.param.b64 [a], " size ";\n" \
    "    call.uni (b), malloc, (a);\n"  \
    "    ld.param.b64 " to ", [b];\n"   \
    "    }\n"
#define KHEAP_FREE(what)                \
    "    {\n"                           \
    "    .param .b64 a;\n"              \
    "    st.param.b64 [a], " what ";\n" \
    "    call.uni free, (a);\n"         \
    "    }\n"
#define KHEAP_INDEX                    \
    "    mov.u32 %a, %ctaid.x;\n"      \
    "    mov.u32 %b, %ntid.x;\n"       \
    "    mov.u32 %c, %tid.x;\n"        \
    "    mad.lo.u32 %a, %a, %b, %c;\n" \
    "    mul.wide.u32 %i, %a, 8;\n"    \
    "    add.u64 %p, %p, %i;\n"

#define KHEAP_HEAD    \
    ".version 6.3\n"  \
    ".target sm_70\n" \
    ".address_size 64\n"
#define KHEAP_EXTERN                                          \
    ".extern .func (.param .b64 r) malloc (.param .b64 n);\n" \
    ".extern .func free (.param .b64 p);\n"

#define KHEAP_TAKE                                                                                       \
    ".visible .entry take(.param .u64 list, .param .u64 size)\n"                                         \
    "{\n"                                                                                                \
    "    .reg .u64 %p, %i, %q, %n;\n"                                                                    \
    "    .reg .u32 %a, %b, %c;\n"                                                                        \
    "    .reg .pred %z;\n"                                                                               \
    "    ld.param.u64 %p, [list];\n"                                                                     \
    "    ld.param.u64 %n, [size];\n" KHEAP_INDEX KHEAP_MALLOC("%q", "%n") "    st.u64 [%p], %q;\n"       \
                                                                          "    setp.eq.u64 %z, %q, 0;\n" \
                                                                          "    @%z ret;\n"               \
                                                                          "    st.u8 [%q], %a;\n"        \
                                                                          "    add.u64 %q, %q, %n;\n"    \
                                                                          "    st.u8 [%q+-1], %a;\n"     \
                                                                          "    ret;\n"                   \
                                                                          "}\n"
#define KHEAP_GIVE                                                                                      \
    ".visible .entry give(.param .u64 list)\n"                                                          \
    "{\n"                                                                                               \
    "    .reg .u64 %p, %i, %q;\n"                                                                       \
    "    .reg .u32 %a, %b, %c;\n"                                                                       \
    "    ld.param.u64 %p, [list];\n" KHEAP_INDEX "    ld.u64 %q, [%p];\n" KHEAP_FREE("%q") "    ret;\n" \
                                                                                           "}\n"

// when: 0 never freed, 1 freed after the write, 2 before.
#define KHEAP_WRITE                                                                                    \
    ".visible .entry write(.param .u64 size, .param .u64 at, .param .u32 when, .param .u64 flag)\n"    \
    "{\n"                                                                                              \
    "    .reg .u64 %q, %n, %f;\n"                                                                      \
    "    .reg .u32 %w, %v;\n"                                                                          \
    "    .reg .pred %z;\n"                                                                             \
    "    ld.param.u64 %n, [size];\n" KHEAP_MALLOC(                                                     \
        "%q", "%n") "    ld.param.u32 %w, [when];\n"                                                   \
                    "    setp.ne.u32 %z, %w, 2;\n"                                                     \
                    "    @%z bra lives;\n" KHEAP_FREE("%q") "lives:\n"                                 \
                                                            "    ld.param.u64 %n, [at];\n"             \
                                                            "    add.u64 %n, %n, %q;\n"                \
                                                            "    ld.u8 %v, [%n];\n"                    \
                                                            "    xor.b32 %v, %v, 255;\n"               \
                                                            "    st.u8 [%n], %v;\n"                    \
                                                            "    setp.ne.u32 %z, %w, 1;\n"             \
                                                            "    @%z bra stays;\n" KHEAP_FREE(         \
                                                                "%q") "stays:\n"                       \
                                                                      "    ld.param.u64 %f, [flag];\n" \
                                                                      "    membar.sys;\n"              \
                                                                      "    st.volatile.u32 [%f], 1;\n" \
                                                                      "    ret;\n"                     \
                                                                      "}\n"
#define KHEAP_TWICE                                                                   \
    ".visible .entry twice(.param .u64 size, .param .u32 times)\n"                    \
    "{\n"                                                                             \
    "    .reg .u64 %q, %n;\n"                                                         \
    "    .reg .u32 %t;\n"                                                             \
    "    .reg .pred %z;\n"                                                            \
    "    ld.param.u64 %n, [size];\n"                                                  \
    "    ld.param.u32 %t, [times];\n" KHEAP_MALLOC("%q", "%n") "again:\n" KHEAP_FREE( \
        "%q") "    sub.u32 %t, %t, 1;\n"                                              \
              "    setp.ne.u32 %z, %t, 0;\n"                                          \
              "    @%z bra again;\n"                                                  \
              "    ret;\n"                                                            \
              "}\n"
#define KHEAP_BOTH                                                                                           \
    ".visible .entry both(.param .u64 size, .param .u32 givers)\n"                                           \
    "{\n"                                                                                                    \
    "    .shared .align 8 .u64 buffer;\n"                                                                    \
    "    .reg .u64 %q, %n;\n"                                                                                \
    "    .reg .u32 %t, %g;\n"                                                                                \
    "    .reg .pred %z;\n"                                                                                   \
    "    mov.u32 %t, %tid.x;\n"                                                                              \
    "    setp.ne.u32 %z, %t, 0;\n"                                                                           \
    "    @%z bra wait;\n"                                                                                    \
    "    ld.param.u64 %n, [size];\n" KHEAP_MALLOC("%q", "%n") "    st.shared.u64 [buffer], %q;\n"            \
                                                              "wait:\n"                                      \
                                                              "    bar.sync 0;\n"                            \
                                                              "    ld.shared.u64 %q, [buffer];\n"            \
                                                              "    ld.param.u32 %g, [givers];\n"             \
                                                              "    setp.ge.u32 %z, %t, %g;\n"                \
                                                              "    @%z ret;\n" KHEAP_FREE("%q") "    ret;\n" \
                                                                                                "}\n"
#define KHEAP_FILL                                                                 \
    ".visible .entry fill_heap(.param .u64 size, .param .u64 count)\n"             \
    "{\n"                                                                          \
    "    .reg .u64 %q, %n, %last, %all, %c;\n"                                     \
    "    .reg .pred %z;\n"                                                         \
    "    ld.param.u64 %n, [size];\n"                                               \
    "    mov.u64 %last, 0;\n"                                                      \
    "    mov.u64 %all, 0;\n"                                                       \
    "more:\n" KHEAP_MALLOC("%q", "%n") "    setp.eq.u64 %z, %q, 0;\n"              \
                                       "    @%z bra full;\n"                       \
                                       "    st.u64 [%q], %last;\n"                 \
                                       "    mov.u64 %last, %q;\n"                  \
                                       "    add.u64 %all, %all, 1;\n"              \
                                       "    bra more;\n"                           \
                                       "full:\n"                                   \
                                       "    setp.eq.u64 %z, %last, 0;\n"           \
                                       "    @%z bra done;\n"                       \
                                       "    mov.u64 %q, %last;\n"                  \
                                       "    ld.u64 %last, [%q];\n" KHEAP_FREE(     \
                                           "%q") "    bra full;\n"                 \
                                                 "done:\n"                         \
                                                 "    ld.param.u64 %c, [count];\n" \
                                                 "    st.u64 [%c], %all;\n"        \
                                                 "    ret;\n"                      \
                                                 "}\n"

static const char kheap_text[] =
    KHEAP_HEAD KHEAP_EXTERN KHEAP_TAKE KHEAP_GIVE KHEAP_WRITE KHEAP_TWICE KHEAP_BOTH KHEAP_FILL;
// For a GPU so old that its module is not redirected.
static const char kheap_old[] =
    ".version 6.3\n.target sm_60\n.address_size 64\n" KHEAP_EXTERN KHEAP_TAKE KHEAP_GIVE;
// Two modules that share nothing but their allocations.
static const char kheap_taking[] =
    KHEAP_HEAD ".extern .func (.param .b64 r) malloc (.param .b64 n);\n" KHEAP_TAKE;
static const char kheap_giving[] = KHEAP_HEAD ".extern .func free (.param .b64 p);\n" KHEAP_GIVE;

#endif
