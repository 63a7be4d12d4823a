// SPDX-License-Identifier: MIT
// What two processes share: files in memory that have no name. A ticket says which; while the process that made it keeps
// the file open, others of the same user open it through /proc. So nobody has to answer them, and nothing is left
// behind when a process dies.
#ifndef MOAT_CPU_SHARE_FILE_H
#define MOAT_CPU_SHARE_FILE_H

#include <stdbool.h>
#include <stdint.h>

enum share_kind { SHARE_MEMORY = 1, SHARE_EVENT };

// What an application carries from one process to the other, in a handle of 64 bytes.
struct share_ticket {
    char magic[6];
    uint16_t kind;
    uint32_t pid;
    int32_t fd;
    uint64_t inode;
    uint64_t size;    // of what is shared, without what the file has behind it
    uint64_t offset;  // of the part that is meant
    uint64_t bytes;   // of that part
    uint64_t id;      // of it, in the process that made it
    uint32_t device;
};
_Static_assert(sizeof(struct share_ticket) <= 64, "a ticket fits into a handle");

// A file that nobody can make shorter, so that no mapping of it is ever without bytes. A descriptor or -ENOMEM.
int share_file_new(uint64_t size);
// As large as that, and of a length that stays: only such a file may be mapped.
bool share_file_fit(int fd, uint64_t size);
int share_file_resize(int fd, uint64_t size);  // 0 or -ENOMEM

// Fills in magic, pid, fd and inode. 0 or a negative errno.
int share_file_ticket(struct share_ticket *t, enum share_kind kind, int fd);
// handle: the application's 64 bytes. False: no ticket of that kind.
bool share_file_read(struct share_ticket *t, enum share_kind kind, const void *handle);
void share_file_write(const struct share_ticket *t, void *handle);
bool share_file_own(const struct share_ticket *t);  // whether this process has made it
int share_file_open(const struct share_ticket *t);  // a descriptor or a negative errno

#endif
