// SPDX-License-Identifier: MIT
// The modules, kernels and variables that compiled host code registers before main and when a library is
// opened, by the host addresses that stand for them. An image is loaded when something of it is first needed.
#ifndef MOAT_RUNTIME_RT_REGISTRY_H
#define MOAT_RUNTIME_RT_REGISTRY_H

#include "runtime/rt.h"

struct rt_registry_module;

enum rt_registry_kind { RT_KERNEL, RT_VARIABLE, RT_MANAGED };

// Registration only stores its arguments. If out of memory, rt_registry_add_module returns NULL, and the
// registrations are lost.
struct rt_registry_module *rt_registry_add_module(const void *wrapper);
void rt_registry_add(struct rt_registry_module *module, enum rt_registry_kind kind, const void *host,
                     const char *name, size_t size);
// Does nothing while the process exits.
void rt_registry_remove_module(struct rt_registry_module *module);

// Loads the module's image and fills the pointers of its managed variables.
cudaError_t rt_registry_load(struct rt_registry_module *module);

// Finds a kernel. func is a host stub, or a kernel that rt_registry_know has seen. rt_enter must have been
// called.
cudaError_t rt_registry_kernel(const void *func, CUkernel *kernel);
// Returns the stub of a kernel, or the kernel itself if it has none.
const void *rt_registry_stub(CUkernel kernel);
// Makes a kernel that did not come from a registered module usable in the place of a stub.
void rt_registry_know(CUkernel kernel);

// Finds the device address and size of a variable in the current context. rt_enter must have been called.
cudaError_t rt_registry_variable(const void *host, CUdeviceptr *address, size_t *size);

// Returns the error of the last failed lookup of a kernel: compiled code launches such a kernel as NULL.
cudaError_t rt_registry_failure(void);

#endif
