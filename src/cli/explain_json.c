// SPDX-License-Identifier: MIT
// The JSON of moat ptx explain; doc/explain.md lists the keys.
#include "cli/explain_print.h"
#include "cli/json.h"

static void add_text(cJSON *to, const char *key, struct str text)
{
    if (text.len)
        cJSON_AddItemToObject(to, key, json_str(text));
}

static void add_name(cJSON *to, const char *key, const struct demangle *names, struct str name)
{
    char text[4096];
    snprintf(text, sizeof text, STR_FMT, STR_ARG(name));
    const char *demangled = demangle_name(names, text);
    add_text(to, key, str_from(demangled));
}

static void add_place(cJSON *to, const struct place_frame *f)
{
    add_text(to, "file", f->file);
    if (f->line)
        cJSON_AddNumberToObject(to, "line", f->line);
}

static void add_frames(cJSON *to, const struct demangle *names, const struct explain_access *a)
{
    char name[PLACE_NAME];
    if (a->nframes < 2)
        return;
    cJSON *frames = cJSON_AddArrayToObject(to, "frames");
    for (unsigned i = 0; i < a->nframes; i++) {
        cJSON *frame = cJSON_CreateObject();
        place_function(&a->frames[i], name);
        add_name(frame, "function", names, str_from(name));
        add_place(frame, &a->frames[i]);
        cJSON_AddBoolToObject(frame, "inlined", a->frames[i].inlined);
        cJSON_AddItemToArray(frames, frame);
    }
}

static void add_root(cJSON *to, const struct explain_kernel *k, uint32_t root)
{
    static const char *const kinds[PROOF_ROOT_KINDS] = {
        [PROOF_ROOT_PARAM] = "parameter", [PROOF_ROOT_GLOBAL] = "global", [PROOF_ROOT_CONST] = "const",
        [PROOF_ROOT_SHARED] = "shared",   [PROOF_ROOT_LOCAL] = "local",   [PROOF_ROOT_CHOICE] = "choice",
    };
    if (root == PROOF_NONE)
        return;
    const struct proof_root *r = &k->ranges->proof.roots[root];
    cJSON *j = cJSON_AddObjectToObject(to, "root");
    cJSON_AddStringToObject(j, "kind", kinds[r->kind]);
    add_text(j, "name", proof_root_name(&k->ranges->proof, r));
    cJSON *members = r->kind == PROOF_ROOT_CHOICE ? cJSON_AddArrayToObject(j, "parameters") : NULL;
    for (uint32_t i = 0; members && i < k->ranges->proof.head->nroots; i++)
        if (proof_root_may_be(&k->ranges->proof, root, i))
            cJSON_AddItemToArray(members, cJSON_CreateNumber(k->ranges->proof.roots[i].param));
    if (r->kind == PROOF_ROOT_PARAM) {
        cJSON_AddNumberToObject(j, "parameter", r->param);
        if (r->inside)
            cJSON_AddNumberToObject(j, "inside", r->inside);
    }
}

static void add_bound(cJSON *to, const struct explain_access *a)
{
    if (a->bound.verdict != PROOF_BOUNDED)
        return;
    cJSON_AddNumberToObject(to, "lowest", (double)a->bound.lowest);
    cJSON_AddNumberToObject(to, "highest", (double)a->bound.highest);
    cJSON_AddBoolToObject(to, "exact", a->bound.exact);
    cJSON_AddBoolToObject(to, "guarded", a->bound.guarded);
    if (a->buffer.known)
        cJSON_AddNumberToObject(to, "buffer", (double)a->buffer.size);
    if (a->answer.before)
        cJSON_AddNumberToObject(to, "before", (double)a->answer.before);
    if (a->answer.needs)
        cJSON_AddNumberToObject(to, "needs", (double)a->answer.needs);
}

static cJSON *access_json(const struct demangle *names, const struct explain_kernel *k,
                          const struct explain_access *a)
{
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "verdict", judge_key(a->verdict));
    add_place(j, explain_kernel_place(a));
    cJSON_AddNumberToObject(j, "ptx_line", a->ptx_line);
    cJSON_AddBoolToObject(j, "reads", a->access->does & PROOF_READS);
    cJSON_AddBoolToObject(j, "writes", (a->access->does & PROOF_WRITES) != 0);
    cJSON_AddBoolToObject(j, "atomic", (a->access->does & PROOF_ATOMIC) != 0);
    cJSON_AddStringToObject(j, "space", ptx_space_name((enum ptx_space)a->access->space).ptr);
    cJSON_AddNumberToObject(j, "bytes", a->access->bytes);
    add_root(j, k, a->root);
    if (k->launch)
        add_bound(j, a);
    add_text(j, "address", a->words);
    add_text(j, "if", a->guard);
    add_text(j, "for", a->loops);
    if (a->verdict == JUDGE_UNKNOWN) {
        add_text(j, "why", str_from(proof_why(a->reason)));
        add_text(j, "help", str_from(proof_help(a->reason)));
        if (a->op)
            add_text(j, "operation", a->op->name);
    }
    add_frames(j, names, a);
    return j;
}

static void add_counts(cJSON *to, const uint64_t counts[JUDGE_VERDICTS])
{
    for (int i = 0; i < JUDGE_VERDICTS; i++)
        cJSON_AddNumberToObject(to, judge_key((enum judge_verdict)i), (double)counts[i]);
}

cJSON *explain_json_kernel(const struct demangle *names, const struct explain_kernel *k)
{
    uint64_t counts[JUDGE_VERDICTS];
    for (int i = 0; i < JUDGE_VERDICTS; i++)
        counts[i] = k->counts[i];
    cJSON *j = cJSON_CreateObject();
    add_text(j, "name", ptx_func_name(k->m, k->f));
    add_name(j, "demangled", names, ptx_func_name(k->m, k->f));
    cJSON_AddBoolToObject(j, "kernel", k->f->is_entry);
    cJSON_AddNumberToObject(j, "calls", k->ranges->proof.head->ncalls);
    add_counts(cJSON_AddObjectToObject(j, "counts"), counts);
    cJSON *all = cJSON_AddArrayToObject(j, "accesses");
    for (uint32_t i = 0; i < k->naccesses; i++)
        cJSON_AddItemToArray(all, access_json(names, k, &k->accesses[i]));
    return j;
}

void explain_json_sums(cJSON *to, const struct explain_sums *sums)
{
    cJSON *total = cJSON_AddObjectToObject(to, "total");
    cJSON_AddNumberToObject(total, "kernels", (double)sums->kernels);
    cJSON_AddNumberToObject(total, "functions", (double)sums->functions);
    cJSON_AddNumberToObject(total, "bounded_kernels", (double)sums->bounded_kernels);
    cJSON_AddNumberToObject(total, "accesses", (double)sums->accesses);
    add_counts(cJSON_AddObjectToObject(total, "counts"), sums->counts);
    cJSON *reasons = cJSON_AddArrayToObject(total, "not_bounded");
    for (int i = 0; i < PROOF_WHY_COUNT; i++) {
        if (!sums->reasons[i])
            continue;
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "why", proof_why((enum proof_reason)i));
        cJSON_AddNumberToObject(row, "accesses", (double)sums->reasons[i]);
        cJSON_AddItemToArray(reasons, row);
    }
}
