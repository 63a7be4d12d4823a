# SPDX-License-Identifier: MIT
"""CUDA graphs that torch.compile records (mode="reduce-overhead"), where moat is PyTorch's allocator.

PyTorch sets its own allocator back to an earlier state before it records a graph, so that graphs of
different paths share memory. moat's gives the memory of a graph to no other (torch_alloc.h): there is no
state to return to, and nothing that PyTorch could compare its list of live tensors with.

A graph's inputs are copied to tensors that PyTorch makes before it records the graph, and gives back after
it: its own allocator keeps their memory with the graph, which reads it whenever it runs."""

import functools

import moat_link


def keep_memory(trees):
    """Changes the module torch._inductor.cudagraph_trees."""
    if not moat_link.torch_allocates:
        return
    node, manager = trees.CUDAGraphNode, trees.CUDAGraphTreeManager
    keep = moat_link.driver().moat_torch_keep
    plain = node._allocate_and_copy_recording_inputs

    @functools.wraps(plain)
    def allocate_inputs(self, inputs):
        keep(1)
        try:
            return plain(self, inputs)
        finally:
            keep(0)

    def prepare_recording(self):
        self.debug_checkpointing_counter += 1
        self.current_node.remove_path_cached_tensors()

    node._allocate_and_copy_recording_inputs = allocate_inputs
    manager.apply_checkpoint_execution_state_in_allocator = prepare_recording
    trees.check_memory_pool = lambda device, pool, live: None
    core = trees.torch._C
    core._cuda_getCheckpointState = lambda device, pool: None
    core._free_And_Remove_DeleterFn = _freeing(core._has_Standard_Deleter, core._free_And_Remove_DeleterFn)


def _freeing(is_owner, free):
    """Frees the memory of a storage that has some to free. PyTorch makes those that a replayed graph has
    written owners of their memory when it sets its allocator back."""

    def free_if_owner(storage):
        if is_owner(storage):
            free(storage)

    return free_if_owner
