// SPDX-License-Identifier: MIT
// Reads the fatbin container that nvcc writes.
//
// A fatbin is a header of 16 bytes and the bytes it counts: entries one after the other, each a header of 64
// bytes or more and a payload. Everything is little-endian, and nothing need be aligned in our memory.
//
//   fatbin header: u32 magic, u16 version, u16 header size, u64 size of what follows
//   entry header:  see read_fields; offsets of its strings count from the entry
#include <endian.h>
#include <inttypes.h>

#include "image/image_internal.h"

enum { MAGIC_SIZE = 4, HEADER_SIZE = 16, ENTRY_SIZE = 64 };
enum { KIND_PTX = 1, KIND_CUBIN = 2 };
enum { FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000, FLAG_ARCH_A = 0x100000, FLAG_ARCH_F = 0x200000 };

static const uint32_t magic = 0xBA55ED50;

static uint16_t get16(const char *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return le16toh(v);
}

static uint32_t get32(const char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

static uint64_t get64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

bool fatbin_is_header(struct str bytes)
{
    return bytes.len >= MAGIC_SIZE && get32(bytes.ptr) == magic;
}

int fatbin_measure(const void *data, image_readable *readable, size_t *len)
{
    if (!readable(data, HEADER_SIZE))
        return -EFAULT;
    unsigned header_size = get16((const char *)data + 6);
    uint64_t size = get64((const char *)data + 8);
    if (header_size < HEADER_SIZE || size > SIZE_MAX / 2)
        return -ENOEXEC;
    *len = header_size + (size_t)size;
    return readable(data, *len) ? 0 : -EFAULT;
}

// Finds a part of an entry's header. Returns false if it is not inside.
static bool header_slice(struct str header, uint64_t at, uint64_t len, struct str *out)
{
    if (at > header.len || len > header.len - at)
        return false;
    *out = (struct str){header.ptr + at, (size_t)len};
    return true;
}

static struct str trimmed(struct str s)
{
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\0'))
        s = str_skip(s, 1);
    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\0'))
        s.len--;
    return s;
}

static bool is_text(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] < 32 || s.ptr[i] == 127)
            return false;
    return true;
}

// Reads source name and options. Cubins have a binary record where PTX has its options; it is skipped.
static bool read_strings(struct str header, struct image_entry *e)
{
    uint32_t record = get32(header.ptr + 20), name = get32(header.ptr + 32);
    if (name && !header_slice(header, name, get32(header.ptr + 36), &e->name))
        return false;
    if (!record)
        return true;
    struct str pair, options;
    if (!header_slice(header, record, 8, &pair) ||
        !header_slice(header, get32(pair.ptr), get32(pair.ptr + 4), &options))
        return false;
    options = trimmed(options);
    if (e->kind != IMAGE_CUBIN && is_text(options))
        e->options = options;
    return true;
}

static void read_fields(const char *h, struct image_entry *e)
{
    e->number = get16(h);
    e->kind = e->number == KIND_PTX ? IMAGE_PTX : e->number == KIND_CUBIN ? IMAGE_CUBIN : IMAGE_OTHER;
    e->version_minor = get16(h + 24);
    e->version_major = get16(h + 26);
    e->arch = get32(h + 28);
    e->flags = get64(h + 40);
    e->suffix = e->flags & FLAG_ARCH_A ? 'a' : e->flags & FLAG_ARCH_F ? 'f' : 0;
    e->compression = e->flags & FLAG_ZSTD ? IMAGE_ZSTD : e->flags & FLAG_LZ4 ? IMAGE_LZ4 : IMAGE_PLAIN;
}

// Reads the payload at `at`, which has `size` bytes according to the header h; `room` bytes are left in the
// fatbin.
static void read_payload(struct image *im, const char *h, size_t at, uint64_t size, size_t room,
                         struct image_entry *e)
{
    e->damaged = true;
    if (size > room) {
        image_damaged(im, e->offset, "module of %" PRIu64 " bytes is cut off: %zu are left", size, room);
        return;
    }
    uint64_t stored = size, full = size;
    if (e->compression != IMAGE_PLAIN) {
        stored = get32(h + 16);
        full = get64(h + 56);
    }
    if (stored > size) {
        image_damaged(im, e->offset, "compressed size %" PRIu64 " is more than the payload's %" PRIu64,
                      stored, size);
        return;
    }
    // The meaning of the sizes of other kinds is not known; those are not decompressed.
    if (e->kind != IMAGE_OTHER && !unpack_plausible(e->compression, (size_t)stored, full)) {
        image_damaged(im, e->offset, "%" PRIu64 " bytes cannot come from %" PRIu64 " compressed ones", full,
                      stored);
        return;
    }
    e->payload = (struct str){im->base + at, (size_t)stored};
    e->full_size = (size_t)full;
    e->damaged = false;
}

// Reads one entry of a fatbin that ends at `end`. *next becomes the offset of the next entry, or `at` if that
// is not known.
static int read_entry(struct image *im, const struct image_place *p, size_t at, size_t end, size_t *next)
{
    const char *h = im->base + at;
    size_t room = end - at;
    *next = at;
    if (room < ENTRY_SIZE) {
        image_damaged(im, at, "module header is cut off: %zu bytes are left", room);
        return 0;
    }
    uint32_t header_size = get32(h + 4);
    if (header_size < ENTRY_SIZE || header_size > room) {
        image_damaged(im, at, "module header cannot have %" PRIu32 " bytes: the rest of this fatbin is lost",
                      header_size);
        return 0;
    }
    room -= header_size;
    struct image_entry e = {.offset = at, .fatbin = im->fatbins - 1, .member = p->member};
    read_fields(h, &e);
    if (!read_strings((struct str){h, header_size}, &e))
        image_damaged(im, at, "names of this module lie outside its header");
    uint64_t size = get64(h + 8);
    read_payload(im, h, at + header_size, size, room, &e);
    if (size <= room)
        *next = at + header_size + (size_t)size;
    return image_add(im, &e);
}

// Reads the entries between *at and end. *at becomes the offset where reading ended. That is before end if
// the next entry's offset is not known, or, in a fatbin whose end is not known (open_end), if another fatbin
// begins.
static int read_entries(struct image *im, const struct image_place *p, size_t *at, size_t end, bool open_end)
{
    while (*at < end) {
        if (open_end && fatbin_is_header((struct str){im->base + *at, end - *at}))
            break;
        size_t next;
        int err = read_entry(im, p, *at, end, &next);
        if (err)
            return err;
        if (next == *at)
            break;
        *at = next;
    }
    return 0;
}

// Reads the fatbin at `at`. *next becomes its end. If its sizes are not plausible, *next is a place inside
// it, and *resync is set unless a fatbin begins there: the caller must search for the next one.
static int read_fatbin(struct image *im, const struct image_place *p, size_t at, size_t *next, bool *resync)
{
    size_t room = p->end - at;
    *next = p->end;
    *resync = false;
    if (room < HEADER_SIZE) {
        image_damaged(im, at, "fatbin header is cut off: %zu bytes are left", room);
        return 0;
    }
    const char *h = im->base + at;
    unsigned version = get16(h + 4), header_size = get16(h + 6);
    uint64_t size = get64(h + 8);
    bool header_fits = header_size >= HEADER_SIZE && header_size <= room;
    bool fits = header_fits && size <= room - header_size;
    if (fits)
        *next = at + header_size + (size_t)size;
    if (version != 1 || !header_fits) {
        image_damaged(im, at, "fatbin of version %u with a header of %u bytes is not understood", version,
                      header_size);
        *resync = !fits;
        *next = fits ? *next : at + FATBIN_STEP;
        return 0;
    }
    if (!fits)
        image_damaged(im, at, "fatbin of %" PRIu64 " bytes is cut off: %zu are left", size,
                      room - header_size);
    im->fatbins++;
    size_t entry = at + header_size;
    int err = read_entries(im, p, &entry, *next, !fits);
    if (!fits) {
        *resync = !fatbin_is_header((struct str){im->base + entry, p->end - entry});
        *next = entry;
    }
    return err;
}

// Returns the first offset from `at` on, in steps of 8, with a magic number; p->end if there is none.
static size_t next_magic(const struct image *im, const struct image_place *p, size_t at)
{
    for (; at < p->end && p->end - at >= MAGIC_SIZE; at += FATBIN_STEP)
        if (get32(im->base + at) == magic)
            return at;
    return p->end;
}

// Returns whether a magic number among other data begins a fatbin: its sizes and those of its first entry
// must fit, because four bytes alone may be a program's constant.
static bool plausible(const struct image *im, const struct image_place *p, size_t at)
{
    size_t room = p->end - at;
    const char *h = im->base + at, *entry = h + HEADER_SIZE;
    if (room < HEADER_SIZE + ENTRY_SIZE || get16(h + 4) != 1 || get16(h + 6) != HEADER_SIZE)
        return false;
    uint64_t size = get64(h + 8), header_size = get32(entry + 4);
    return size <= room - HEADER_SIZE && header_size >= ENTRY_SIZE && header_size <= size &&
           get64(entry + 8) <= size - header_size;
}

static size_t next_plausible(const struct image *im, const struct image_place *p, size_t at)
{
    while ((at = next_magic(im, p, at)) < p->end && !plausible(im, p, at))
        at += FATBIN_STEP;  // may pass the end, cannot wrap
    return at;
}

// Rounds up to a multiple of 8 from the place's beginning, where fatbins begin.
static size_t aligned(const struct image_place *p, size_t at)
{
    size_t over = (at - p->at) % FATBIN_STEP;
    size_t up = over ? FATBIN_STEP - over : 0;
    return up > p->end - at ? p->end : at + up;
}

static bool all_zero(struct str s)
{
    return s.len == 0 || (s.ptr[0] == 0 && memcmp(s.ptr, s.ptr + 1, s.len - 1) == 0);
}

int fatbin_walk(struct image *im, const struct image_place *p)
{
    bool resync = false;
    for (size_t at = p->at; at < p->end; at = aligned(p, at)) {
        size_t found = resync ? next_plausible(im, p, at) : next_magic(im, p, at);
        if (!resync && !all_zero((struct str){im->base + at, found - at}))
            image_damaged(im, at, "%zu bytes here are not a fatbin", found - at);
        if (found == p->end)
            break;
        int err = read_fatbin(im, p, found, &at, &resync);
        if (err)
            return err;
    }
    return 0;
}

int fatbin_search(struct image *im, const struct image_place *p)
{
    bool resync;
    for (size_t at = p->at; (at = next_plausible(im, p, at)) < p->end; at = aligned(p, at)) {
        int err = read_fatbin(im, p, at, &at, &resync);
        if (err)
            return err;
    }
    return 0;
}
