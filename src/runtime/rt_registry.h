// SPDX-License-Identifier: MIT
//
// The modules, kernels and variables that compiled host code registers before main and when a library is
// opened, by the host address that stands for each. Their images are loaded when something of them is first
// needed.
#ifndef MOAT_RUNTIME_RT_REGISTRY_H
#define MOAT_RUNTIME_RT_REGISTRY_H

#include "runtime/rt.h"

struct rt_registry_module;

enum rt_registry_kind { RT_KERNEL, RT_VARIABLE, RT_MANAGED };

// No more than a note is taken. NULL, and registration failed, where memory is short.
struct rt_registry_module *rt_registry_add_module(const void *wrapper);
void rt_registry_add(struct rt_registry_module *module, enum rt_registry_kind kind, const void *host,
                     const char *name, size_t size);
// Does nothing while the process exits.
void rt_registry_remove_module(struct rt_registry_module *module);

// Loads the module's image and fills the pointers of its managed variables.
cudaError_t rt_registry_load(struct rt_registry_module *module);

// func is a host stub or a kernel that rt_registry_know has seen. After rt_enter.
cudaError_t rt_registry_kernel(const void *func, CUkernel *kernel);
// The stub of a kernel, or the kernel itself where it has none.
const void *rt_registry_stub(CUkernel kernel);
// A kernel that did not come from a registered module may be passed where stubs are.
void rt_registry_know(CUkernel kernel);

// The device address and size of a variable in the current context. After rt_enter.
cudaError_t rt_registry_variable(const void *host, CUdeviceptr *address, size_t *size);

// Why the last kernel that could not be had could not: compiled code launches such a one as NULL.
cudaError_t rt_registry_failure(void);

#endif
