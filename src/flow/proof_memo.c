// SPDX-License-Identifier: MIT
#include "flow/proof_memo.h"

#include <errno.h>
#include <string.h>

#include "flow/closed.h"
#include "flow/proof_state.h"

// MOST_BYTES: of all answers of a memo, if at least two fit.
// Closed forms: at most so many, in the room of so many of the largest. The first is of a launch that nobody
// has made, and is made for the second launch that is not remembered: many kernels are launched once, or
// never. The others are tried from the second launch on that needed proof_eval, after each failure half as
// often; so many, and one more for so many answers of theirs.
enum { MOST_CLOSED = 12, CLOSED_ROOM = 3, FIRST_TRIES = 16, ANSWERS_PER_TRY = 64, MOST_FAILURES = 20 };
enum { MOST_AT_LAUNCH = 512 };  // instructions of a program for which one is made at a launch
enum { MOST_ANSWERS = 16, LEAST_ANSWERS = 2, MOST_BYTES = 1 << 18, LAUNCH_BYTES = 7 * 4 };
// After two launches in a row that a closed form answered, so many are answered by it alone.
enum { CLOSED_ALONE = 32 };
enum { NO_FORM = UINT32_MAX };

// Bytes of parameters that are part of the key.
struct part {
    uint32_t at, size;
};

// Memory: the memo, its parts, a flag for each root, the closed forms, registers, a guess, the keys, the
// answers. An answer that was given is in `used`; the key of answer i is keys + i * key_size. The answer
// behind the last one is of proof_memo_closed.
struct proof_memo {
    const struct proof *p;
    uint32_t nparts, key_size, nanswers, next;
    uint32_t used;  // a bit for each answer
    uint32_t last;  // the answer that was given last: most launches are like the one before
    uint32_t misses,
        next_try;  // launches that only proof_eval could answer, and how many before the next try
    uint32_t tries,
        failures;  // closed forms that were tried; those that could not be made, or were of no use
    bool unused;   // no launch has used a closed form since the last one was made
    bool asked;    // for a launch
    bool tried;    // to make the first closed form
    uint32_t nclosed, closed_end,
        guessed;  // closed forms, their bytes; 1 if no launch has asked for the first
    uint32_t closed_at[MOST_CLOSED];
    uint64_t closed_answers;
    uint32_t from_closed;  // a bit for each answer that one gave
    uint32_t last_closed;  // the one that held last
    // The registers of the form that gave the last answer of any, and the shape of its launch: grid, block,
    // dynamic shared memory. NO_FORM: there are none.
    uint32_t regs_of, shape[7];
    int64_t *regs;
    uint32_t row, alone;  // launches in a row that one answered; those to come that are answered by it alone
    struct part *parts;
    uint8_t *in_key;  // by root
    char *closed;
    uint32_t sums[MOST_ANSWERS], sum;  // of the keys: most answers are passed over without a look at theirs
    char *keys, *key, *guess;          // guess: parameters of the launch that nobody has made
    struct proof_bound *answers;
};

static size_t round_up(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

static uint32_t answers_of(const struct proof *p)
{
    size_t n = MOST_BYTES / ((p->head->naccesses + 1) * sizeof(struct proof_bound));
    return n > MOST_ANSWERS ? MOST_ANSWERS : n < LEAST_ANSWERS ? LEAST_ANSWERS : (uint32_t)n;
}

static uint32_t count_params(const struct proof *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->head->ninsns; i++)
        n += p->insns[i].op == PROOF_PARAM;
    return n;
}

static size_t most_key(const struct proof *p)
{
    return round_up(LAUNCH_BYTES + (size_t)count_params(p) * 8);
}

size_t proof_memo_size(const struct proof *p)
{
    uint32_t n = answers_of(p);
    return round_up(sizeof(struct proof_memo)) + round_up(count_params(p) * sizeof(struct part)) +
           round_up(p->head->nroots + 1) + CLOSED_ROOM * round_up(closed_size(p)) +
           round_up(closed_regs_size(p)) + round_up(p->head->params) + (n + 1) * most_key(p) +
           (size_t)(n + 1) * (p->head->naccesses + 1) * sizeof(struct proof_bound);
}

// --- which pointers matter ---------------------------------------------------------------------------------

// MADE: of pointers that are part of the key. An evaluation may take one of them for its root: then what is
// added to it is a number, though it may be a pointer too.
enum { NO_POINTER = UINT32_MAX, MADE = UINT32_MAX - 1 };

// What a value is: the root + numbers, or a number.
struct trace {
    const struct proof *p;
    uint32_t *pointer;  // by instruction: a root, NO_POINTER for a number, or MADE
    uint8_t *in_key;
};

// Returns what a value is that is made of this one.
static uint32_t use(struct trace *t, uint32_t at)
{
    if (t->pointer[at] == NO_POINTER)
        return NO_POINTER;
    if (t->pointer[at] != MADE)
        t->in_key[t->pointer[at]] = 1;
    return MADE;
}

static uint32_t add(struct trace *t, const struct proof_insn *i)
{
    uint32_t a = t->pointer[i->a], b = t->pointer[i->b];
    if (b == NO_POINTER || (a == NO_POINTER && i->op == PROOF_ADD))
        return a == NO_POINTER ? b : a;
    use(t, i->a);
    use(t, i->b);
    return MADE;
}

// One of several values: a pointer if all are the same one.
static uint32_t one_of(struct trace *t, const uint32_t *values, uint32_t n)
{
    uint32_t first = n ? t->pointer[values[0]] : NO_POINTER;
    bool same = true;
    for (uint32_t i = 1; i < n; i++)
        same &= t->pointer[values[i]] == first;
    for (uint32_t i = 0; i < n && !same; i++)
        use(t, values[i]);
    return same ? first : MADE;
}

static uint32_t use_operands(struct trace *t, const struct proof_insn *i)
{
    static const char *const operands[] = {
#define PROOF(id, text, result) text,
#include "flow/proof_ops.def"
    };
    const uint32_t at[] = {i->a, i->b, i->c};
    uint32_t made = NO_POINTER;
    for (unsigned k = 0; k < 3; k++)
        if (operands[i->op][k] == 'v' && use(t, at[k]) == MADE)
            made = MADE;
    return made;
}

static uint32_t trace_one(struct trace *t, const struct proof_insn *i, const struct proof_insn *block)
{
    switch (i->op) {
    case PROOF_PARAM: return i->bits == 64 ? i->a : NO_POINTER;
    // A variable is a pointer too: a parameter that is added to it is a number, though it may point
    // somewhere.
    case PROOF_BASE: return i->a;
    // Numbers are added to one of several pointers, or to what is made of some.
    case PROOF_CHOICE: return t->pointer[i->a] == NO_POINTER ? i->b : t->pointer[i->a];
    case PROOF_ADD:
    case PROOF_SUB: return add(t, i);
    case PROOF_STEPS: use(t, i->b); return t->pointer[i->a];
    case PROOF_SELECT: return one_of(t, (const uint32_t[]){i->a, i->b}, 2);
    case PROOF_MERGE: return one_of(t, t->p->inputs + i->a, block->b);
    case PROOF_ACCESS: return NO_POINTER;
    case PROOF_LOOP:
        for (uint32_t k = i->a; k < i->a + i->b; k++) {
            use(t, t->p->tests[k].start);
            use(t, t->p->tests[k].step);
            use(t, t->p->tests[k].limit);
        }
        return NO_POINTER;
    default: return use_operands(t, i);
    }
}

// Finds the roots whose value is more than something that numbers are added to.
static void find_uses(const struct proof *p, uint32_t *pointer, uint8_t *in_key)
{
    struct trace t = {p, pointer, in_key};
    const struct proof_insn *block = p->insns;
    for (uint32_t at = 0; at < p->head->ninsns; at++) {
        if (p->insns[at].op == PROOF_BLOCK)
            block = &p->insns[at];
        pointer[at] = trace_one(&t, &p->insns[at], block);
    }
}

// --- closed forms ------------------------------------------------------------------------------------------

static bool is_shape(const uint32_t shape[7], const struct proof_launch *l)
{
    uint32_t differs = shape[6] ^ l->dynamic_shared;
    for (unsigned i = 0; i < 3; i++)
        differs |= (shape[i] ^ l->grid[i]) | (shape[3 + i] ^ l->block[i]);
    return !differs;
}

// Requires that the launch has as many parameters as the program reads.
static bool hold(struct proof_memo *m, uint32_t i, const struct proof_launch *l, struct proof_bound *out)
{
    const void *form = m->closed + m->closed_at[i];
    bool again = m->regs_of == i && is_shape(m->shape, l);
    m->regs_of = NO_FORM;
    if (again ? !closed_eval_again(form, m->p, l, m->regs, out)
              : !proof_launch_valid(m->p, l) || !closed_eval(form, m->p, l, m->regs, out))
        return false;
    m->regs_of = i;
    for (unsigned k = 0; k < 3 && !again; k++) {
        m->shape[k] = l->grid[k];
        m->shape[3 + k] = l->block[k];
    }
    m->shape[6] = l->dynamic_shared;
    m->last_closed = i;
    m->unused = false;
    m->closed_answers++;
    return true;
}

static bool eval_closed(struct proof_memo *m, const struct proof_launch *l, struct proof_bound *out)
{
    uint32_t last = m->last_closed;
    if (!m->nclosed)
        return false;
    if (hold(m, last, l, out))
        return true;
    for (uint32_t i = 0; i < m->nclosed; i++)
        if (i != last && hold(m, i, l, out))
            return true;
    return false;
}

// Makes a closed form of an answer, for launches to come. Those of earlier launches make room.
static bool add_closed(struct proof_memo *m, const struct proof_launch *l, void *work,
                       const struct proof_bound *answer)
{
    size_t size = round_up(closed_size(m->p));
    if (m->nclosed == MOST_CLOSED || m->closed_end + size > CLOSED_ROOM * size) {
        m->nclosed = m->guessed;
        m->regs_of = NO_FORM;
        m->closed_end = m->guessed ? (uint32_t)round_up(closed_used(m->closed, m->p)) : 0;
        m->last_closed = 0;
    }
    if (!size || !closed_build(m->p, l, answer, work, m->closed + m->closed_end))
        return false;
    m->closed_at[m->nclosed++] = m->closed_end;
    m->closed_end += (uint32_t)round_up(closed_used(m->closed + m->closed_end, m->p));
    return true;
}

static void learn(struct proof_memo *m, const struct proof_launch *l, void *work,
                  const struct proof_bound *answer)
{
    if (m->p->head->ninsns > MOST_AT_LAUNCH || m->misses++ < m->next_try ||
        m->tries > FIRST_TRIES + m->closed_answers / ANSWERS_PER_TRY)
        return;
    m->tries++;
    bool useless = m->unused;
    m->unused = add_closed(m, l, work, answer);
    if ((useless || !m->unused) && m->failures < MOST_FAILURES)
        m->failures++;
    m->next_try = m->misses + (1u << m->failures) - 1;
}

// --- a launch that nobody has made -------------------------------------------------------------------------

// Numbers that are likely to leave guards undecided, as those of most launches do: more threads than any
// integer says on the first axis, or on all.
static const struct guess {
    uint32_t grid[3], block[3];
    uint8_t number;
} guesses[] = {
    {{32, 16, 8}, {32, 8, 2}, 100},
    {{64, 1, 1}, {256, 1, 1}, 200},
};

static void guess_params(const struct proof *p, uint8_t number, char *to)
{
    memset(to, 0, p->head->params);
    for (uint32_t i = 0; i < p->head->ninsns; i++) {
        const struct proof_insn *x = &p->insns[i];
        bool pointer = x->op == PROOF_PARAM && x->bits == 64 && x->a != PROOF_NONE && p->roots[x->a].strong;
        uint64_t v = pointer ? (x->a + 1ULL) << 36 : number;
        if (x->op == PROOF_PARAM)
            memcpy(to + x->imm, &v, x->bits / 8);
    }
}

// Makes the first closed form; `out` has room for an answer.
static void guess_closed(struct proof_memo *m, void *work, struct proof_bound *out)
{
    m->tried = true;
    for (uint32_t i = 0; i < sizeof guesses / sizeof *guesses && !m->guessed; i++) {
        struct proof_launch l = {.params_size = m->p->head->params, .params = m->guess};
        memcpy(l.grid, guesses[i].grid, sizeof l.grid);
        memcpy(l.block, guesses[i].block, sizeof l.block);
        guess_params(m->p, guesses[i].number, m->guess);
        m->guessed = !proof_eval(m->p, &l, work, out, NULL) && add_closed(m, &l, work, out);
    }
}

// --- keys --------------------------------------------------------------------------------------------------

static void add_part(struct proof_memo *m, uint32_t at, uint32_t size)
{
    for (uint32_t i = 0; i < m->nparts; i++)
        if (m->parts[i].at == at && m->parts[i].size == size)
            return;
    m->parts[m->nparts++] = (struct part){at, size};
    m->key_size += size;
}

struct proof_memo *proof_memo_init(const struct proof *p, void *memory, void *work)
{
    char *at = memory;
    struct proof_memo *m = memory;
    *m = (struct proof_memo){
        .p = p, .nanswers = answers_of(p), .key_size = LAUNCH_BYTES, .next_try = 1, .regs_of = NO_FORM};
    at += round_up(sizeof *m);
    m->parts = (struct part *)at;
    at += round_up(count_params(p) * sizeof *m->parts);
    m->in_key = (uint8_t *)at;
    at += round_up(p->head->nroots + 1);
    m->closed = at;
    at += CLOSED_ROOM * round_up(closed_size(p));
    m->regs = (int64_t *)at;
    at += round_up(closed_regs_size(p));
    m->guess = at;
    at += round_up(p->head->params);
    m->key = at;
    at += most_key(p);
    m->keys = at;
    at += m->nanswers * most_key(p);
    m->answers = (struct proof_bound *)at;
    memset(m->in_key, 0, p->head->nroots + 1);
    find_uses(p, work, m->in_key);
    for (uint32_t i = 0; i < p->head->ninsns; i++) {
        const struct proof_insn *x = &p->insns[i];
        if (x->op == PROOF_PARAM && (x->bits != 64 || x->a == PROOF_NONE || m->in_key[x->a]))
            add_part(m, (uint32_t)x->imm, x->bits / 8u);
    }
    m->key_size = (uint32_t)round_up(m->key_size);
    memset(m->key, 0, most_key(p));
    return m;
}

bool proof_memo_is_closed(const struct proof_memo *m)
{
    return m->from_closed >> m->last & 1;
}

bool proof_memo_uses(const struct proof_memo *m, uint32_t root)
{
    return m->in_key[root];
}

// The key's size is a multiple of 8.
static uint32_t sum_of(const struct proof_memo *m)
{
    uint64_t sum = 0, word;
    for (uint32_t at = 0; at < m->key_size; at += 8) {
        memcpy(&word, m->key + at, 8);
        sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    }
    return (uint32_t)(sum >> 32);
}

static void make_key(struct proof_memo *m, const struct proof_launch *l)
{
    char *to = m->key;
    memcpy(to, l->grid, sizeof l->grid);
    memcpy(to + 12, l->block, sizeof l->block);
    memcpy(to + 24, &l->dynamic_shared, sizeof l->dynamic_shared);
    to += LAUNCH_BYTES;
    for (uint32_t i = 0; i < m->nparts; i++) {
        const struct part *x = &m->parts[i];
        const char *from = (const char *)l->params + x->at;
        if (x->size == 4)
            memcpy(to, from, 4);
        else if (x->size == 8)
            memcpy(to, from, 8);
        else
            memcpy(to, from, x->size);
        to += x->size;
    }
    m->sum = sum_of(m);
}

static bool matches(const struct proof_memo *m, uint32_t answer)
{
    return (m->used >> answer & 1) && m->sums[answer] == m->sum &&
           !memcmp(m->keys + (size_t)answer * m->key_size, m->key, m->key_size);
}

// Answers for a launch that is not remembered, as answer i.
static int eval_anew(struct proof_memo *m, const struct proof_launch *l, void *work, uint32_t i,
                     bool evaluates)
{
    struct proof_bound *out = m->answers + (size_t)i * (m->p->head->naccesses + 1);
    if (m->asked && !m->tried)
        guess_closed(m, work, out);
    m->asked = true;
    m->from_closed |= 1u << i;
    if (eval_closed(m, l, out))
        return 0;
    m->from_closed &= ~(1u << i);
    if (!evaluates)
        return -EAGAIN;
    int err = proof_eval(m->p, l, work, out, NULL);
    if (!err)
        learn(m, l, work, out);
    return err;
}

// Returns whether a launch has as many parameters as the program reads.
static bool has_params(const struct proof_memo *m, const struct proof_launch *l)
{
    return l->params_size >= m->p->head->params && (l->params || !m->p->head->params);
}

static int answer(struct proof_memo *m, const struct proof_launch *l, void *work, bool evaluates,
                  const struct proof_bound **out, bool *remembered)
{
    if (!has_params(m, l))
        return -EINVAL;
    make_key(m, l);
    uint32_t i = m->last, n = m->p->head->naccesses + 1;
    bool known = matches(m, i);
    for (uint32_t k = 0; k < m->nanswers && !known; k++) {
        i = k;
        known = matches(m, k);
    }
    if (remembered)
        *remembered = known;
    if (known) {
        m->row = m->alone = 0;
    } else {
        i = m->next;
        m->used &= ~(1u << i);
        int err = eval_anew(m, l, work, i, evaluates);
        if (err)
            return err;
        memcpy(m->keys + (size_t)i * m->key_size, m->key, m->key_size);
        m->sums[i] = m->sum;
        m->used |= 1u << i;
        m->next = (i + 1) % m->nanswers;
        m->row = m->from_closed >> i & 1 ? m->row + 1 : 0;
        m->alone = m->row > 1 ? CLOSED_ALONE : 0;
    }
    m->last = i;
    *out = m->answers + (size_t)i * n;
    return 0;
}

int proof_memo_eval(struct proof_memo *m, const struct proof_launch *l, void *work,
                    const struct proof_bound **out, bool *remembered)
{
    return answer(m, l, work, true, out, remembered);
}

int proof_memo_find(struct proof_memo *m, const struct proof_launch *l, void *work,
                    const struct proof_bound **out)
{
    return answer(m, l, work, false, out, NULL);
}

bool proof_memo_closed(struct proof_memo *m, const struct proof_launch *l, const struct proof_bound **out)
{
    struct proof_bound *answer = m->answers + (size_t)m->nanswers * (m->p->head->naccesses + 1);
    if (!m->alone || !has_params(m, l) || !hold(m, m->last_closed, l, answer)) {
        m->alone = 0;
        return false;
    }
    m->alone--;
    *out = answer;
    return true;
}

bool proof_memo_renew(struct proof_memo *m, const struct proof_launch *l, void *work,
                      const struct proof_bound **out)
{
    struct proof_bound *answer = m->answers + (size_t)m->last * (m->p->head->naccesses + 1);
    if (!proof_memo_is_closed(m) || proof_eval(m->p, l, work, answer, NULL))
        return false;
    m->from_closed &= ~(1u << m->last);
    m->row = m->alone = 0;
    *out = answer;
    return true;
}
