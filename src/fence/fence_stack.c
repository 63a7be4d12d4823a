// SPDX-License-Identifier: MIT
#include "fence/fence_stack.h"

#include "core/guard.h"
#include "kfence/kfence.h"

enum { MOST_MORE = 4096 };  // bytes by which larger frames make the stack larger

struct stack {
    size_t own, real;  // 0: not asked for
};
static struct stack stacks[CONTEXT_CONTEXTS];  // under the lock of fence_host, or of the program's own calls

uint32_t fence_stack_room(struct context *ctx)
{
    struct stack *s = &stacks[context_number(ctx)];
    size_t own = 0;
    if (!s->real) {
        if (guard.real.cuCtxGetLimit(&own, CU_LIMIT_STACK_SIZE))
            return 0;
        *s = (struct stack){own, own + (own < MOST_MORE ? own : MOST_MORE) + KFENCE_STACK_RESERVE};
        if (guard.real.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, s->real) ||
            guard.real.cuCtxGetLimit(&s->real, CU_LIMIT_STACK_SIZE))
            s->real = own;
    }
    return s->real > KFENCE_STACK_RESERVE ? (uint32_t)(s->real - KFENCE_STACK_RESERVE) : 0;
}

void fence_stack_set(struct context *ctx)
{
    stacks[context_number(ctx)] = (struct stack){0, 0};
}

void fence_stack_forget(struct context *ctx)
{
    fence_stack_set(ctx);
}

bool fence_stack_limit(struct context *ctx, size_t *bytes)
{
    const struct stack *s = &stacks[context_number(ctx)];
    if (!s->real)
        return false;
    *bytes = s->own;
    return true;
}
