// SPDX-License-Identifier: MIT
// The error ring: brings errors that kernels have found to the host while they run.
//
//     device memory                  pinned, mapped host memory              host memory
//     struct error_ring_writer ───▶  struct error_ring | records[size] ───▶  struct error_ring_reader
//                              ◀───  taken                             ◀───
//
// Any thread of any kernel writes (error_ring_write.h in our own code, ERROR_RING_REPORT in code that a pass
// rewrites); one host thread at a time reads. Nobody waits: a record that finds the ring full is counted and
// lost.
//
// Everything in the ring is hostile input: whoever runs kernels in the context can write any byte of it at
// any time. So the reader trusts only its own struct, copies a record before inspecting it, and inspects no
// more than `size` places before it reports that there are no more. The contents of a record are for its
// client to validate.
//
// A writer may stop between taking a place and filling it: it is slow, or its kernel was killed. Records
// behind that place are still read, out of order; only the room is not reused, so `size - 1` more records can
// be written before records are lost, until the place is filled or error_ring_skip gives it up.
#ifndef MOAT_RING_ERROR_RING_H
#define MOAT_RING_ERROR_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A device function: (.param .b64 what, address, a, b, c), where `what` is ERROR_RING_WHAT(...) and a, b and
// c are the first words of the payload; the others are 0. Without a ring it does nothing.
#define ERROR_RING_REPORT "moat_ring_report"
// .weak .global .align 8 .u64: the address of the struct error_ring_writer that ERROR_RING_REPORT uses; 0:
// none. The host sets it after loading.
#define ERROR_RING_VARIABLE "moat_ring_writer"
#define ERROR_RING_WHAT(client, kind, site) \
    ((uint64_t)(client) | (uint64_t)(kind) << 16 | (uint64_t)(uint32_t)(site) << 32)

enum {
    ERROR_RING_WORDS = 9,  // of a payload
    ERROR_RING_RECORDS_MOST = 4096,
};

// The writer of a record, which defines the meaning of kind, site and payload.
enum error_ring_client {
    ERROR_RING_NOBODY,
    ERROR_RING_KHEAP,  // the kernels' heap: kheap.h
    ERROR_RING_CHECK,  // accesses that are compared with bounds
    ERROR_RING_SHADOW,
    ERROR_RING_FENCE,
    ERROR_RING_CLIENTS,
};

struct error_ring_record {
    uint64_t sequence;  // written last, with release at system scope: the record's number + 1
    uint16_t client;    // enum error_ring_client
    uint16_t kind;      // defined by the client; never 0
    uint32_t site;      // a place in a kernel; defined by the client
    uint64_t address;   // that the error is about
    uint64_t grid;
    uint32_t block[3], thread[3];  // of the thread that wrote it
    uint64_t payload[ERROR_RING_WORDS];
};
_Static_assert(sizeof(struct error_ring_record) == 128, "a line of a GPU");
_Static_assert(offsetof(struct error_ring_record, site) == offsetof(struct error_ring_record, client) + 4,
               "ERROR_RING_WHAT is written at once");

// In host memory, zeroed at first. With next and lost of the writer, n the number of a record, 0 <= n < next,
// and honest kernels:
//
//     size = 2^k, 1 <= size <= ERROR_RING_RECORDS_MOST
//     taken <= next <= taken + size                    both only grow
//     calls of the writer = next + writer.lost         when none is under way
//     place of n = records[n % size]
//     n < taken:  n was read, or given up
//     n >= taken: sequence at its place = n + 1 if it is written; until then the number + 1 of an earlier
//                 record, or 0
//     lost <= writer.lost, and lost = 0 only if writer.lost = 0
struct error_ring {
    uint64_t taken;  // written by the host for the device; the host never reads it
    uint64_t unused[7];
    // Written by the device for a host that cannot read the writer's: while a kernel runs, or after a fault.
    uint64_t lost;
    uint64_t unused2[7];
    struct error_ring_record records[];
};
_Static_assert(sizeof(struct error_ring) == 128,
               "the host's line, and the device's, and records begin a third");

// In device memory, where its atomic operations are fast.
struct error_ring_writer {
    uint64_t ring;  // the ring's device address
    uint64_t size;
    uint64_t next;  // number of the next record
    uint64_t lost;  // records that found the ring full
    uint64_t unused[12];
};
_Static_assert(sizeof(struct error_ring_writer) == 128, "a line of its own");

// The host's own. Bit n % size of `ahead`: n was read or dropped, though taken <= n.
//
//     taken <= at <= end <= taken + size
//     taken + bits of ahead = returned + bad + skipped
//     bit taken % size of ahead = 0
struct error_ring_reader {
    struct error_ring *ring;
    uint64_t size;
    uint64_t taken;
    uint64_t at, end;  // the present round: the next place, and where it ends
    // Numbers of records: returned; that no client can have written; given up.
    uint64_t returned, bad, skipped;
    uint64_t lost;  // the largest value seen in the ring
    uint64_t ahead[ERROR_RING_RECORDS_MOST / 64];
};

// PTX for passes: ERROR_RING_REPORT and ERROR_RING_VARIABLE, to be inserted into a module behind its own
// .version, .target and .address_size, which this text lacks. Needs PTX 6.3 and sm_70. NUL-terminated.
extern const char error_ring_functions_ptx[];

// Returns the bytes that a ring of `size` records needs; 0 if there can be no such ring.
uint64_t error_ring_bytes(uint64_t size);
// Initializes the device's struct. ring: the ring's device address.
void error_ring_writer_start(struct error_ring_writer *w, uint64_t ring, uint64_t size);
// Initializes a reader. The ring's bytes must be 0, and no kernel may use it yet.
void error_ring_reader_start(struct error_ring_reader *r, struct error_ring *ring, uint64_t size);

// Copies the next record to *out. Returns false if there is none, at the latest when it has inspected `size`
// places since it last did so. Every record that was written before the first call after a false is returned
// before the next false. When it returns false, *out may have changed.
bool error_ring_take(struct error_ring_reader *r, struct error_ring_record *out);
// Gives up the places that were taken and not filled before one that was filled, and returns how many. Only
// when no kernel can write any more and error_ring_take has returned false: else a record may be mixed from
// two.
uint64_t error_ring_skip(struct error_ring_reader *r);
// Returns how many records found the ring full, as far as the ring says; not more than there were, if kernels
// are honest.
uint64_t error_ring_lost(struct error_ring_reader *r);

// Return whether the equations above hold: for a reader, always; for a ring, while no honest kernel writes.
bool error_ring_reader_valid(const struct error_ring_reader *r);
bool error_ring_valid(const struct error_ring *ring, const struct error_ring_writer *w);

#endif
