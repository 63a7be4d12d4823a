// SPDX-License-Identifier: MIT
// The text of moat ptx explain:
//
//   scale(float*, float, int): 3 accesses: 1 not bounded, 2 bounded
//     scale.cu:7  not bounded  reads 4 bytes of p0: the index is loaded from memory
//                              help: compare the index with the size before it is used
//     scale.cu:9  bounded      writes 4 bytes at p1 + 4*threadIdx.x
#include "cli/explain_print.h"

#include <inttypes.h>

#include "report/report.h"

enum { PLACE_LEAST = 8, PLACE_MOST = 36, WORDS_MOST = 120 };

// Widths of the first two columns.
struct widths {
    int place, verdict;
};

void explain_sums_add(struct explain_sums *sums, const struct explain_kernel *k)
{
    sums->kernels += k->f->is_entry;
    sums->functions += !k->f->is_entry;
    sums->accesses += k->naccesses;
    sums->bounded_kernels += k->f->is_entry && !k->counts[JUDGE_UNKNOWN];
    for (int i = 0; i < JUDGE_VERDICTS; i++)
        sums->counts[i] += k->counts[i];
    for (uint32_t i = 0; i < k->naccesses; i++)
        if (k->accesses[i].verdict == JUDGE_UNKNOWN)
            sums->reasons[k->accesses[i].reason]++;
}

// --- numbers and names
// -------------------------------------------------------------------------------------

void explain_print_number(struct out *o, int64_t n)
{
    char digits[24];
    uint64_t value = n < 0 ? -(uint64_t)n : (uint64_t)n;
    int len = snprintf(digits, sizeof digits, "%" PRIu64, value);
    if (n < 0)
        out_char(o, '-');
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            out_char(o, ',');
        out_char(o, digits[i]);
    }
}

static void print_count(struct out *o, uint64_t n, const char *one, const char *many)
{
    explain_print_number(o, (int64_t)n);
    out_char(o, ' ');
    out_cstr(o, n == 1 ? one : many);
}

static void print_name(const struct explain_print *p, struct str name)
{
    char text[4096];
    snprintf(text, sizeof text, STR_FMT, STR_ARG(name));
    out_clean(p->o, str_from(demangle_name(&p->names, text)));
}

// Removes the function's own name from those of its variables: "scale(float*)::tile" is "tile".
static void drop_scope(const struct explain_print *p, const struct explain_kernel *k, char *text)
{
    char mangled[PLACE_NAME], scope[2 * PLACE_NAME];
    snprintf(mangled, sizeof mangled, STR_FMT, STR_ARG(ptx_func_name(k->m, k->f)));
    int n = snprintf(scope, sizeof scope, "%s::", demangle_name(&p->names, mangled));
    for (char *at = text; n > 2 && n < (int)sizeof scope && (at = strstr(at, scope));)
        memmove(at, at + n, strlen(at + n) + 1);
}

// Prints words, with the names of variables demangled; long ones are cut.
static void print_words(const struct explain_print *p, const struct explain_kernel *k, struct str words)
{
    char text[2048], demangled[4096];
    snprintf(text, sizeof text, STR_FMT, STR_ARG(words));
    const char *found = demangle_text(&p->names, text, demangled, sizeof demangled);
    if (found != demangled)
        snprintf(demangled, sizeof demangled, "%s", found);
    drop_scope(p, k, demangled);
    if (strlen(demangled) > WORDS_MOST)
        strcpy(demangled + WORDS_MOST - 3, "...");
    out_clean(p->o, str_from(demangled));
}

static void print_root(const struct explain_print *p, const struct explain_kernel *k, uint32_t root)
{
    char text[PLACE_NAME];
    judge_root(&k->ranges->proof, root, text, sizeof text);
    print_words(p, k, str_from(text));
}

// --- places
// ------------------------------------------------------------------------------------------------

static struct str short_path(const struct explain_print *p, struct str file)
{
    struct str root = str_from(p->root);
    if (root.len && str_starts(file, root) && file.len > root.len && file.ptr[root.len] == '/')
        return str_skip(file, root.len + 1);
    const char *slash = file.len && file.ptr[0] == '/' ? memrchr(file.ptr, '/', file.len) : NULL;
    return slash ? str_skip(file, (size_t)(slash + 1 - file.ptr)) : file;
}

static int write_place(const struct explain_print *p, const struct explain_access *a, char *text, size_t size)
{
    const struct place_frame *f = explain_kernel_place(a);
    struct str file = short_path(p, f->file);
    if (f->line)
        return snprintf(text, size, STR_FMT ":%u", STR_ARG(file), f->line);
    return snprintf(text, size, "PTX:%u", a->ptx_line);
}

static struct widths widths_of(const struct explain_print *p, const struct explain_kernel *k)
{
    char text[4200];
    struct widths w = {PLACE_LEAST, 0};
    for (uint32_t i = 0; i < k->naccesses; i++) {
        const struct explain_access *a = &k->accesses[i];
        int place = a->shown ? write_place(p, a, text, sizeof text) : 0;
        int verdict = (int)strlen(judge_text(a->verdict));
        w.place = place > w.place && place <= PLACE_MOST ? place : w.place;
        w.verdict = verdict > w.verdict ? verdict : w.verdict;
    }
    return w;
}

static void new_line(struct out *o, struct widths w)
{
    out_fmt(o, "\n%*s", 2 + w.place + 2 + w.verdict + 2, "");
}

// Prints the functions that were inlined, as reports of errors show them.
static void print_frames(const struct explain_print *p, const struct explain_access *a, struct widths w)
{
    char name[PLACE_NAME];
    for (unsigned i = 0; a->nframes > 1 && i < a->nframes; i++) {
        const struct place_frame *f = &a->frames[i];
        new_line(p->o, w);
        place_function(f, name);
        out_fmt(p->o, "#%u ", i);
        print_name(p, str_from(name));
        if (f->line) {
            out_char(p->o, ' ');
            out_clean(p->o, short_path(p, f->file));
            out_fmt(p->o, ":%u", f->line);
        }
    }
}

// --- an access
// ---------------------------------------------------------------------------------------------

static const char *verb_of(const struct explain_access *a)
{
    unsigned does = a->access->does;
    return does & PROOF_ATOMIC                   ? "updates"
           : (does & PROOF_WRITES) && (does & 1) ? "reads and writes"
           : does & PROOF_WRITES                 ? "writes"
                                                 : "reads";
}

static void print_bytes(struct out *o, const struct explain_access *a)
{
    if (!a->access->bytes && a->access->more)
        out_lit(o, " as many bytes as a register says");
    if (!a->access->bytes)
        return;
    out_cstr(o, a->access->more ? " lines of " : a->access->upto ? " up to " : " ");
    print_count(o, a->access->bytes, "byte", "bytes");
}

static void print_range(const struct explain_print *p, const struct explain_kernel *k,
                        const struct explain_access *a)
{
    out_char(p->o, ' ');
    if (a->verdict == JUDGE_MAYBE || (a->verdict != JUDGE_OUTSIDE && !a->bound.exact))
        out_lit(p->o, "at most ");
    if (a->root != PROOF_NONE)
        print_root(p, k, a->root);
    out_char(p->o, '[');
    explain_print_number(p->o, a->buffer.known ? a->answer.first : a->bound.lowest);
    out_lit(p->o, " .. ");
    explain_print_number(p->o, a->buffer.known ? a->answer.last : a->bound.highest);
    out_char(p->o, ']');
}

// Says how a bound relates to its buffer.
static void print_buffer(const struct explain_print *p, const struct explain_access *a)
{
    struct out *o = p->o;
    if (a->verdict == JUDGE_INSIDE) {
        out_lit(o, " of ");
        print_count(o, a->buffer.size, "byte", "bytes");
    }
    if (a->answer.before) {
        out_lit(o, ": starts ");
        print_count(o, a->answer.before, "byte", "bytes");
        out_lit(o, " before the buffer");
    }
    if (a->answer.needs) {
        out_cstr(o, a->answer.before ? ", needs " : ": needs ");
        print_count(o, a->answer.needs, "byte", "bytes");
        out_lit(o, ", the buffer has ");
        explain_print_number(o, (int64_t)a->buffer.size);
    }
}

static void print_when(const struct explain_print *p, const struct explain_kernel *k,
                       const struct explain_access *a, struct widths w)
{
    if (a->guard.len) {
        new_line(p->o, w);
        out_lit(p->o, "if ");
        print_words(p, k, a->guard);
    }
    if (a->loops.len) {
        new_line(p->o, w);
        out_lit(p->o, "for ");
        print_words(p, k, a->loops);
    }
}

static void print_unknown(const struct explain_print *p, const struct explain_kernel *k,
                          const struct explain_access *a, struct widths w)
{
    struct out *o = p->o;
    print_bytes(o, a);
    out_lit(o, " of ");
    if (a->root != PROOF_NONE)
        print_root(p, k, a->root);
    else
        out_fmt(o, STR_FMT " memory", STR_ARG(ptx_space_name((enum ptx_space)a->access->space)));
    out_fmt(o, ": %s", proof_why(a->reason));
    if (a->op)
        out_fmt(o, " (" STR_FMT ")", STR_ARG(a->op->name));
    const char *help = proof_help(a->reason);
    if (*help) {
        new_line(o, w);
        out_fmt(o, "help: %s", help);
    }
}

static void print_access(const struct explain_print *p, const struct explain_kernel *k,
                         const struct explain_access *a, struct widths w)
{
    struct out *o = p->o;
    char place[4200];
    write_place(p, a, place, sizeof place);
    out_fmt(o, "  %-*s  %-*s  %s", w.place, place, w.verdict, judge_text(a->verdict), verb_of(a));
    if (a->verdict == JUDGE_UNKNOWN) {
        print_unknown(p, k, a, w);
    } else if (a->verdict == JUDGE_UNREACHABLE) {
        print_bytes(o, a);
    } else if (k->launch) {
        print_range(p, k, a);
        print_buffer(p, a);
    } else {
        print_bytes(o, a);
        out_lit(o, " at ");
        print_words(p, k, a->words);
        print_when(p, k, a, w);
    }
    if (a->alike) {
        new_line(o, w);
        out_lit(o, "and ");
        print_count(o, a->alike, "more of this line", "more of this line");
    }
    print_frames(p, a, w);
    out_char(o, '\n');
}

// --- kernels
// -----------------------------------------------------------------------------------------------

static void print_counts(struct out *o, const uint64_t counts[JUDGE_VERDICTS], uint64_t all)
{
    const char *between = ": ";
    print_count(o, all, "access", "accesses");
    for (int i = 0; i < JUDGE_VERDICTS; i++) {
        if (!counts[i])
            continue;
        out_cstr(o, between);
        if (counts[i] == all && all > 1)
            out_lit(o, "all");
        else
            explain_print_number(o, (int64_t)counts[i]);
        out_fmt(o, " %s", judge_text((enum judge_verdict)i));
        between = ", ";
    }
}

void explain_print_kernel(const struct explain_print *p, const struct explain_kernel *k)
{
    uint64_t counts[JUDGE_VERDICTS];
    for (int i = 0; i < JUDGE_VERDICTS; i++)
        counts[i] = k->counts[i];
    if (!k->f->is_entry)
        out_lit(p->o, "function ");
    print_name(p, ptx_func_name(k->m, k->f));
    out_lit(p->o, ": ");
    print_counts(p->o, counts, k->naccesses);
    if (k->ranges->proof.head->ncalls) {
        out_lit(p->o, "; ");
        print_count(p->o, k->ranges->proof.head->ncalls, "call", "calls");
        out_lit(p->o, " of functions that are not inlined");
    }
    out_char(p->o, '\n');
    struct widths w = widths_of(p, k);
    for (uint32_t i = 0; i < k->naccesses; i++)
        if (k->accesses[i].shown)
            print_access(p, k, &k->accesses[i], w);
    out_char(p->o, '\n');
}

// --- totals
// ------------------------------------------------------------------------------------------------

static void print_reasons(struct out *o, const struct explain_sums *sums)
{
    uint64_t left[PROOF_WHY_COUNT];
    memcpy(left, sums->reasons, sizeof left);
    for (;;) {
        int most = 0;
        for (int i = 0; i < PROOF_WHY_COUNT; i++)
            most = left[i] > left[most] ? i : most;
        if (!left[most])
            return;
        out_fmt(o, "  %8" PRIu64 "  not bounded: %s\n", left[most], proof_why((enum proof_reason)most));
        left[most] = 0;
    }
}

void explain_print_sums(const struct explain_print *p, const struct explain_sums *sums)
{
    struct out *o = p->o;
    out_lit(o, "total: ");
    print_counts(o, sums->counts, sums->accesses);
    uint64_t known = sums->accesses - sums->counts[JUDGE_UNKNOWN];
    if (sums->counts[JUDGE_UNKNOWN])
        out_fmt(o, " (%.0f %% bounded)", 100.0 * (double)known / (double)sums->accesses);
    out_lit(o, "; every access bounded in ");
    explain_print_number(o, (int64_t)sums->bounded_kernels);
    out_lit(o, " of ");
    print_count(o, sums->kernels, "kernel", "kernels");
    out_char(o, '\n');
    print_reasons(o, sums);
    out_lit(o, "p0, p1, ... are the parameters of a kernel, in their order\n");
}
