// SPDX-License-Identifier: MIT
// A proof program: what a kernel will touch, as a function of its launch.
//
// ranges.h makes one for each kernel. It is a flat list of instructions (proof_ops.def), the slice of the
// kernel that addresses and the branches before them depend on. proof_eval runs through it once with the
// values of a launch and answers for each access: bounded, with the lowest and the highest byte relative to
// its root; unreachable; or unknown, with the reason. doc/proofs.md has the method and why it is sound.
//
//   ranges_build ──▶ bytes ──▶ cache, another process ──▶ proof_read ──▶ proof_eval, at each launch
//
// The bytes are position independent and have this machine's byte order. They may come from a file that
// somebody has changed: proof_read checks everything that proof_eval relies on to stay inside its memory
// and to end. It cannot know whether a program tells the truth about its kernel: who stores programs
// protects them.
#ifndef MOAT_FLOW_PROOF_H
#define MOAT_FLOW_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define PROOF_NONE UINT32_MAX
enum { PROOF_VERSION = 7 };

enum proof_op {
#define PROOF(id, operands, result) PROOF_##id,
#include "flow/proof_ops.def"
    PROOF_OP_COUNT,
};

enum proof_reason {
#define REASON(id, why, help) PROOF_WHY_##id,
#include "flow/proof_reasons.def"
    PROOF_WHY_COUNT,
};

// The texts of a reason, see proof_reasons.def. Never NULL.
const char *proof_why(enum proof_reason reason);
const char *proof_help(enum proof_reason reason);

enum proof_launch_value {
    PROOF_TID,  // + 0, 1, 2 for x, y, z
    PROOF_NTID = PROOF_TID + 3,
    PROOF_CTAID = PROOF_NTID + 3,
    PROOF_NCTAID = PROOF_CTAID + 3,
    PROOF_DYNAMIC_SHARED = PROOF_NCTAID + 3,
    PROOF_LAUNCH_VALUES,
};

// The test of a GROWS: it compares the value of the round, or NEW the value of the next one, read as `bits`
// and `sign` say; it lets the loop go on if that is less than b, or LE, at most b.
enum { GROWS_LE = 1, GROWS_NEW = 2 };

// The ways around of a STAYS: one flips bits of `imm`, one subtracts the value from `imm`. Others make it a
// number from 0 to `imm` whatever it was, or keep it. Only subtraction sets bits that neither the value
// before the loop nor `c` has.
enum { STAYS_XOR = 1, STAYS_SUB = 2 };

// How a TURNS reads the value, and NE: whether it compares with imm + 1 for equality, by steps of 1.
enum { TURNS_SIGNED = 1, TURNS_NE = 2 };

enum proof_relation { PROOF_LT, PROOF_LE, PROOF_GT, PROOF_GE, PROOF_EQ, PROOF_NE };

// --- the format --------------------------------------------------------------------------------------------

struct proof_insn {
    uint8_t op;      // enum proof_op
    uint8_t bits;    // 1 to 64 where the row of proof_ops.def says so
    uint8_t sign;    // 1: signed; COMPARE, tests: enum proof_relation
    uint8_t reason;  // OPAQUE: enum proof_reason
    uint32_t a, b, c;
    int64_t imm;
};

// A way into a block that is no way around a loop.
struct proof_edge {
    uint32_t block;      // it comes from this block, by number; blocks are numbered in the order they stand
    uint32_t predicate;  // taken only if this predicate holds, or does not: PROOF_NONE if none
    uint32_t negated;
};

// A loop begins its next round only if `start + round * step` (round 0, 1, ...) has the relation to
// `limit`. The left side is a register of `bits` bits that is read as signed or not, or wider with such a
// content.
struct proof_test {
    uint32_t start, step, limit;  // numbers that exist before the loop
    uint8_t relation, bits, sign;
    uint8_t zero;
};

enum proof_root_kind {
    PROOF_ROOT_PARAM,  // a pointer in the kernel's parameters
    PROOF_ROOT_GLOBAL,
    PROOF_ROOT_CONST,
    PROOF_ROOT_SHARED,
    PROOF_ROOT_LOCAL,
    PROOF_ROOT_CHOICE,  // one of several PARAM, not the same one in each thread and at each moment
    PROOF_ROOT_KINDS,
};

// What an address starts from. Bounds are relative to it.
struct proof_root {
    uint32_t kind;    // enum proof_root_kind
    uint32_t param;   // PARAM: its number
    uint32_t at;      // PARAM: byte of the pointer in the buffer of all parameters
    uint32_t inside;  // PARAM: byte of the pointer in its parameter, not 0 for structures
    uint32_t name;    // name of the parameter or variable: byte in the names, and its length
    uint32_t name_len;
    uint32_t strong;  // PARAM, CHOICE: 1 if the function uses it as a pointer, 0 if it may be a number
    uint32_t power;   // variables: they are at a multiple of 2^power, at most PROOF_MOST_POWER
    // Variables: bytes; 0 if the declaration does not say: dynamic shared memory. CHOICE: a bit for each root
    // that it may be, of which there are at most 64.
    uint64_t size;
};

enum { PROOF_READS = 1, PROOF_WRITES = 2, PROOF_ATOMIC = 4 };

struct proof_access {
    uint32_t stmt;  // statement in its function
    // It touches so many bytes from its address on, and those that an EXTENT adds; at most that many if
    // `upto`.
    uint32_t bytes;
    int64_t offset;  // added to the address
    uint8_t row;     // number of the access in ptx_stmt_mem
    uint8_t space;   // enum ptx_space
    uint8_t does;    // PROOF_READS ...
    uint8_t reason;  // not NONE: it cannot be bounded, whatever the launch
    uint8_t upto;
    uint8_t bits;  // width of the address: 32 or 64
    uint8_t more;  // an EXTENT adds bytes
    uint8_t zero;
};

struct proof_head {
    char magic[4];  // "moPf"
    uint32_t version;
    uint32_t size;  // of all bytes
    uint32_t ninsns, nedges, ntests, ninputs, nroots, naccesses, names, nblocks;
    uint32_t params;  // bytes of parameters that are read
    uint32_t ncalls;  // calls of functions, whose accesses are not listed
    uint32_t zero;
};

// A program in memory; everything points into its bytes.
struct proof {
    const struct proof_head *head;
    const struct proof_insn *insns;
    const struct proof_edge *edges;
    const struct proof_test *tests;
    const uint32_t *inputs;
    const struct proof_root *roots;
    const struct proof_access *accesses;
    const char *names;
};

// Returns whether an address that starts from `root` may start from root `other`.
static inline bool proof_root_may_be(const struct proof *p, uint32_t root, uint32_t other)
{
    if (p->roots[root].kind != PROOF_ROOT_CHOICE)
        return root == other;
    return other < 64 && (p->roots[root].size >> other & 1);
}

// Limits of what proof_read accepts and ranges_build makes.
enum { PROOF_MOST_INSNS = 1 << 15, PROOF_MOST_ACCESSES = 1 << 14, PROOF_MOST_ROOTS = 1 << 10 };

// Checks a program, which must be aligned to 8 bytes and outlive *out. Returns 0 or -EINVAL.
int proof_read(const void *bytes, size_t size, struct proof *out);

static inline struct str proof_root_name(const struct proof *p, const struct proof_root *r)
{
    return (struct str){p->names + r->name, r->name_len};
}

// --- evaluation --------------------------------------------------------------------------------------------

struct proof_launch {
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared;
    uint32_t params_size;
    const void *params;  // laid out as the kernel reads them
};

enum proof_verdict { PROOF_UNKNOWN, PROOF_BOUNDED, PROOF_UNREACHABLE };

// The answer for an access. BOUNDED: every byte that a thread of the launch touches lies in
// [root + lowest, root + highest]; sums are modulo the size of an address. Every address is root + residue
// modulo 2^power.
enum { PROOF_MOST_POWER = 5 };
struct proof_bound {
    uint8_t verdict;
    uint8_t reason;  // UNKNOWN: enum proof_reason
    // BOUNDED: some thread that gets there touches `lowest`, and some `highest`; never where the root is a
    // CHOICE, of which each one must contain the bound.
    bool exact : 1;
    // It runs only under conditions that the launch does not decide, or the bound rests on some.
    bool guarded : 1;
    uint8_t power : 3;
    uint8_t residue;
    uint32_t root;  // PROOF_NONE if not known; may be known though the access is UNKNOWN
    int64_t lowest, highest;
};

// The answer for a root.
struct proof_touched {
    int64_t lowest, highest;                 // of its bounded accesses; lowest > highest: there are none
    uint32_t bounded, unknown, unreachable;  // accesses; those with an unknown root count for no root
    bool reads, writes;
};

// Returns the bytes of memory that proof_eval needs for a program: some 600 for each instruction.
size_t proof_work_size(const struct proof *p);

// Evaluates a program for a launch. `work`: proof_work_size bytes, aligned to 8, whose content does not
// matter. out: one answer for each access. roots: one for each root, or NULL. Takes no memory, no lock,
// makes no system call. Returns 0, or -EINVAL if a dimension is 0 or above the limits of CUDA or the
// parameters are too short: then nothing is bounded and out is not filled.
int proof_eval(const struct proof *p, const struct proof_launch *l, void *work, struct proof_bound *out,
               struct proof_touched *roots);

// The same without roots; and sets vague[i] if a condition on the way to access i compares an index of its
// address with a number from memory, or from another thread. Such an access may stay in its buffer because of
// that condition alone, which no evaluation understands.
int proof_eval_vague(const struct proof *p, const struct proof_launch *l, void *work, struct proof_bound *out,
                     bool *vague);

#endif
