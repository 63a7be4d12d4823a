// SPDX-License-Identifier: MIT
// Answers for the launches of a kernel, remembered: a launch with the values of an earlier one costs a
// comparison instead of an evaluation.
//
// The key of an answer is what proof_eval reads: grid, block, dynamic shared memory, and the bytes of
// parameters that the program uses. A pointer is not among them if the program only adds numbers to it: then
// the distance of every access from it is the same whatever its value is, and so are the bounds, which are
// distances. It is part of the key if it is compared, masked, subtracted or added to another one.
//
// A launch with other values is answered by a closed form (closed.h), if one holds for it; only else by
// proof_eval. The first closed form is made for the second such launch.
//
// The memory is the caller's; nothing is allocated or locked. Calls for one memo must not overlap.
#ifndef MOAT_FLOW_PROOF_MEMO_H
#define MOAT_FLOW_PROOF_MEMO_H

#include "flow/proof.h"

struct proof_memo;

// Returns the bytes that the memo of a program needs: for up to 16 answers, fewer for large programs.
size_t proof_memo_size(const struct proof *p);

// Makes an empty memo in `memory`, aligned to 8 bytes. The program must outlive it. `work` is as for
// proof_eval, and needed during this call only.
struct proof_memo *proof_memo_init(const struct proof *p, void *memory, void *work);

// As proof_eval. On success *out has one answer for each access, which stays until the next call.
// remembered: set to whether it is the answer of an equal launch; may be NULL.
int proof_memo_eval(struct proof_memo *m, const struct proof_launch *l, void *work,
                    const struct proof_bound **out, bool *remembered);

// As proof_memo_eval, but evaluates nothing: returns -EAGAIN if neither an earlier answer nor a closed form
// helps.
int proof_memo_find(struct proof_memo *m, const struct proof_launch *l, void *work,
                    const struct proof_bound **out);

// Answers by the closed form that held last, without a look at what is remembered: launches that differ each
// time are answered sooner so. Returns false if it does not hold, or if the launches before were not of that
// kind. The answer, whose bounds may be wider than proof_eval's, is not kept.
bool proof_memo_closed(struct proof_memo *m, const struct proof_launch *l, const struct proof_bound **out);

// Returns whether the last answer, when it was given first, came from a closed form.
bool proof_memo_is_closed(const struct proof_memo *m);

// Evaluates the launch of the last answer anew if a closed form gave it: some bounds may be narrower then.
// Returns false if that cannot help.
bool proof_memo_renew(struct proof_memo *m, const struct proof_launch *l, void *work,
                      const struct proof_bound **out);

// Returns whether the value of a root, which is a parameter, is part of the key.
bool proof_memo_uses(const struct proof_memo *m, uint32_t root);

#endif
