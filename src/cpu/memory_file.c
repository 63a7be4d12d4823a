// SPDX-License-Identifier: MIT
// Files in memory that device memory is cut from, and the labels behind their bytes.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "cpu/memory.h"
#include "cpu/share_file.h"
#include "exec/space.h"

static const uint64_t most = (uint64_t)1 << 42;

int memory_file_make(struct memory_file *f, const struct memory_label *label)
{
    if (f->made)
        return 0;
    struct memory_range *all = mem_zalloc(1, sizeof *all);
    int fd = all ? memory_file_new(most, label) : -1;
    if (fd < 0) {
        mem_free(all);
        return -ENOMEM;
    }
    all->size = most;
    f->room = (struct memory_tree){0};
    memory_range_insert(&f->room, all);
    f->fd = fd;
    f->made = true;
    return 0;
}

void memory_file_end(struct memory_file *f)
{
    if (!f->made)
        return;
    struct memory_range *all = memory_range_after(&f->room, 0);
    memory_range_remove(&f->room, all);
    mem_free(all);
    close(f->fd);
    f->made = false;
}

struct memory_range *memory_file_take(struct memory_file *f, uint64_t size)
{
    uint64_t at;
    struct memory_range *r = memory_range_fit(&f->room, size, MEMORY_UNIT, &at);
    return r ? memory_range_take(&f->room, r, at, size) : NULL;
}

void memory_file_give(struct memory_file *f, struct memory_range *r)
{
    fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)r->base, (off_t)r->size);
    memory_range_give(&f->room, r, 0, UINT64_MAX);
}

int memory_file_map(int fd, uint64_t offset, uint64_t addr, uint64_t size)
{
    void *want = space_host(addr);
    void *got =
        mmap(want, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, (off_t)offset);
    return got == want ? 0 : -ENOMEM;
}

int memory_file_new(uint64_t size, const struct memory_label *label)
{
    int fd = share_file_new(size + MEMORY_PAGE);
    if (fd < 0)
        return -ENOMEM;
    if (pwrite(fd, label, sizeof *label, (off_t)size) == (ssize_t)sizeof *label)
        return fd;
    close(fd);
    return -ENOMEM;
}

bool memory_file_read(int fd, const char *magic, uint64_t *size, struct memory_label *label)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st) || st.st_size <= MEMORY_PAGE ||
        (st.st_size - MEMORY_PAGE) % MEMORY_UNIT != 0 || !share_file_fit(fd, (uint64_t)st.st_size))
        return false;
    *size = (uint64_t)st.st_size - MEMORY_PAGE;
    return pread(fd, label, sizeof *label, (off_t)*size) == (ssize_t)sizeof *label &&
           memcmp(label->magic, magic, sizeof label->magic) == 0;
}
