// SPDX-License-Identifier: MIT
// Files in memory, without names, that two processes share. A ticket identifies a file; while the process
// that made it keeps the file open, other processes of the same user open it through /proc. So no process has
// to answer requests, and nothing is left behind when a process dies.
#ifndef MOAT_CPU_SHARE_FILE_H
#define MOAT_CPU_SHARE_FILE_H

#include <stdbool.h>
#include <stdint.h>

enum share_kind { SHARE_MEMORY = 1, SHARE_EVENT };

// What an application passes from one process to the other, in a handle of 64 bytes.
struct share_ticket {
    char magic[6];
    uint16_t kind;
    uint32_t pid;
    int32_t fd;
    uint64_t inode;
    uint64_t size;    // of what is shared, without the data that follow it in the file
    uint64_t offset;  // of the part that is meant
    uint64_t bytes;   // length of that part
    uint64_t id;      // of that part, in the process that made it
    uint32_t device;
    uint32_t zero;  // equal tickets have equal bytes
};
_Static_assert(sizeof(struct share_ticket) <= 64, "a ticket fits into a handle");

// Makes a file that cannot be made shorter, so that a mapping of it never loses its bytes. Returns a
// descriptor or -ENOMEM.
int share_file_new(uint64_t size);
// Returns whether the file has exactly that size and cannot be made shorter: only such a file may be mapped.
bool share_file_fit(int fd, uint64_t size);
int share_file_resize(int fd, uint64_t size);  // 0 or -ENOMEM

// Fills in magic, kind, pid, fd and inode. Returns 0 or a negative errno.
int share_file_ticket(struct share_ticket *t, enum share_kind kind, int fd);
// Reads a ticket from the application's 64 bytes. Returns false if they are no ticket of that kind.
bool share_file_read(struct share_ticket *t, enum share_kind kind, const void *handle);
void share_file_write(const struct share_ticket *t, void *handle);
bool share_file_own(const struct share_ticket *t);  // whether this process made it
int share_file_open(const struct share_ticket *t);  // returns a descriptor or a negative errno

#endif
