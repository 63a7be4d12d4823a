// SPDX-License-Identifier: MIT
#include "check/check_explain.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "check/check_launch.h"
#include "flow/access_thread.h"
#include "flow/access_words.h"
#include "kcheck/kcheck.h"
#include "track/tensor_label.h"

enum { PARAMS = 64, MOST_GUARD = 120 };

struct explaining {
    const struct pass_check_kernel *kernel;
    const struct pass_check_site *site;
    uint32_t row;  // of the access in the proof
    struct proof proof;
    struct check_launch_saved saved;
    struct proof_launch launch;
    struct access_thread thread;
    struct access_words words;
    struct access_words_param params[PARAMS];
};

// Finds the kernel that the site is in, and its access. A site in a function has no proof.
static bool find(struct explaining *x, const struct pass_check *checks, uint32_t number)
{
    x->site = &checks->sites[number];
    for (uint32_t i = 0; i < checks->nkernels; i++) {
        const struct pass_check_kernel *k = &checks->kernels[i];
        if (!str_eq(k->name, x->site->function) || k->proved == PASS_CHECK_FULL || k->nparams > PARAMS)
            continue;
        x->kernel = k;
        for (x->row = 0; x->row < k->naccesses; x->row++)
            if (k->asked[x->row].site == number)
                return !proof_read(k->proof.ptr, k->proof.len, &x->proof);
    }
    return false;
}

static uint32_t root_of(const struct explaining *x)
{
    const struct pass_check_asked *asked = &x->kernel->asked[x->row];
    for (uint32_t i = 0; asked->root != PASS_CHECK_ANY_ROOT && i < x->proof.head->nroots; i++)
        if (x->proof.roots[i].kind == PROOF_ROOT_PARAM && x->proof.roots[i].at == asked->root)
            return i;
    return PROOF_NONE;
}

// Returns whether the numbers of the launch and the thread give the address.
static bool start(struct explaining *x, const struct check_explain *e)
{
    if (!check_launch_saved(e->launch, &x->saved))
        return false;
    x->launch = (struct proof_launch){
        .dynamic_shared = x->saved.shared, .params_size = x->saved.size, .params = x->saved.bytes};
    memcpy(x->launch.grid, x->saved.grid, sizeof x->launch.grid);
    memcpy(x->launch.block, x->saved.block, sizeof x->launch.block);
    for (uint32_t i = 0; i < x->kernel->nparams; i++)
        x->params[i] = (struct access_words_param){x->kernel->params[i].offset, x->kernel->params[i].size};
    x->thread = (struct access_thread){.p = &x->proof, .l = &x->launch, .base = e->root};
    memcpy(x->thread.block, e->block, sizeof x->thread.block);
    memcpy(x->thread.thread, e->thread, sizeof x->thread.thread);
    return access_words_open(&x->words, &x->proof, x->row, root_of(x), x->params, x->kernel->nparams) &&
           access_thread_explains(&x->thread, x->words.access, e->address);
}

static void write_place(const struct check_explain *e, uint32_t width, struct out *to)
{
    int64_t far = (int64_t)(e->address - e->base);
    const char *what = e->root ? "variable" : "buffer";
    if (width > 1 && far % width == 0 && e->size % width == 0)
        out_fmt(to, "element %lld, and the %s has %llu of %u bytes", (long long)(far / width), what,
                (unsigned long long)(e->size / width), width);
    else
        out_fmt(to, "byte %lld, and the %s has %llu", (long long)far, what, (unsigned long long)e->size);
}

static bool is_understood(const struct out *o)
{
    return !o->error && !memchr(o->buf, '?', o->len) && o->len < CHECK_EXPLAIN_NOTE - 200;
}

// Appends the tensor whose address a parameter is, for languages in which one argument is several parameters.
static bool write_tensor(const struct explaining *x, unsigned n, struct out *to)
{
    char name[160];
    uint64_t address;
    if (n >= x->kernel->nparams || x->kernel->params[n].size != sizeof address ||
        x->kernel->params[n].offset + sizeof address > x->saved.size)
        return false;
    memcpy(&address, x->saved.bytes + x->kernel->params[n].offset, sizeof address);
    if (!address || !tensor_label_name(address, name, sizeof name))
        return false;
    out_fmt(to, " (p%u is the address of %s)", n, name);
    return true;
}

// Appends what the first parameter that a text names stands for: p2 is an argument, p2.8 a part of one.
static void write_first_argument(const struct explaining *x, struct out *to)
{
    static const char *const ordinals[] = {"first", "second", "third", "fourth", "fifth", "sixth"};
    for (size_t i = 1; i < to->len; i++) {
        char word[40];
        unsigned n, byte;
        if (to->buf[i] != 'p' || !memchr(" (-*+~", to->buf[i - 1], 6))
            continue;
        snprintf(word, sizeof word, "%.*s", (int)(to->len - i < 32 ? to->len - i : 32), to->buf + i);
        int parts = sscanf(word, "p%3u.%6u", &n, &byte);
        if (parts < 1)
            continue;
        if (parts == 1 && write_tensor(x, n, to))
            return;
        out_fmt(to,
                parts > 1 ? " (p%u.%u is the value at byte %u of the kernel's " : " (p%u is the kernel's ", n,
                byte, byte);
        if (n < sizeof ordinals / sizeof *ordinals)
            out_fmt(to, "%s argument)", ordinals[n]);
        else
            out_fmt(to, "argument number %u)", n + 1);
        return;
    }
}

static void write_index(struct explaining *x, const struct check_explain *e, struct out *to)
{
    out_lit(to, "the address is ");
    access_words_address(&x->words, to);
    if (x->words.nloops)
        out_fmt(to, " with k1 = %llu", (unsigned long long)x->thread.counter);
    out_lit(to, ": ");
    write_place(e, x->site->width, to);
    write_first_argument(x, to);
}

// Whether a person understands the words of a condition: not what the compiler made to unroll a loop.
static bool is_plain(const struct access_words *w, const char *text, size_t length)
{
    return length < MOST_GUARD && w->nloops < 2 && !memchr(text, '?', length) &&
           !memmem(text, length, " or ", 4) && !memmem(text, length, "not understood", 14);
}

// Appends the numbers of a comparison, if they are known.
static void write_numbers(struct explaining *x, const struct access_words_condition *c, struct out *to)
{
    const struct proof_insn *i = &x->proof.insns[c->predicate];
    int64_t a, b;
    if (i->op != PROOF_COMPARE || !access_thread_value(&x->thread, i->a, &a) ||
        !access_thread_value(&x->thread, i->b, &b))
        return;
    out_fmt(to, ", here %lld%s%lld", (long long)a, access_words_relation(i, c->negated), (long long)b);
}

// Returns false if a condition does not hold: then the proof's words are not what happened.
static bool write_guards(struct explaining *x, struct out *to)
{
    struct access_words_condition list[ACCESS_WORDS_CONDITIONS];
    unsigned n = access_words_conditions(&x->words, list), written = 0;
    for (unsigned i = 0; i < n; i++) {
        bool holds;
        if (access_thread_holds(&x->thread, list[i].predicate, &holds) && holds == list[i].negated)
            return false;
        size_t start = to->len;
        out_cstr(to, written ? "; and if " : "it is reached if ");
        size_t words = to->len;
        access_words_condition(&x->words, &list[i], to);
        if (!is_plain(&x->words, to->buf + words, to->len - words)) {
            to->len = start;
            continue;
        }
        write_numbers(x, &list[i], to);
        written++;
    }
    return true;
}

static void copy(char *to, const struct out *from)
{
    snprintf(to, CHECK_EXPLAIN_NOTE, "%.*s", (int)from->len, from->buf);
}

static void say(struct explaining *x, struct check_explain *e)
{
    struct out index, guards;
    out_to_memory(&index);
    out_to_memory(&guards);
    write_index(x, e, &index);
    if (is_understood(&index) && x->words.nloops < 2 && write_guards(x, &guards)) {
        copy(e->index, &index);
        if (is_understood(&guards) && guards.len)
            copy(e->guards, &guards);
    }
    out_close(&guards);
    out_close(&index);
}

void check_explain(const struct pass_check *checks, uint32_t number, struct check_explain *e)
{
    static struct explaining x;  // under the lock of check_host.c
    e->index[0] = e->guards[0] = 0;
    x = (struct explaining){.kernel = NULL};
    if (find(&x, checks, number) && start(&x, e))
        say(&x, e);
}
