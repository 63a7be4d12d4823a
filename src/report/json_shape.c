// SPDX-License-Identifier: MIT
#include "report/json_shape.h"

const char *const json_shape_access[3] = {NULL, "read", "write"};

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define SHAPE(T, table)                \
    {                                  \
        table, COUNT(table), sizeof(T) \
    }

// Rows. AT(field) is defined for each table as the offset of a field in its struct.
#define ROW(key, kind, always, at, flag, count, shape)   \
    {                                                    \
        key, JSON_##kind, always, at, flag, count, shape \
    }
#define FIELD(key, kind, at) ROW(key, kind, false, at, 0, 0, NULL)
#define ALWAYS(key, kind, at) ROW(key, kind, true, at, 0, 0, NULL)
#define IF(flag, key, kind, at) ROW(key, kind, true, at, flag, 0, NULL)
#define TEXTS(key, at, count) ROW(key, TEXTS, false, at, 0, count, NULL)
#define ARRAY(key, at, count, shape) ROW(key, ARRAY, false, at, 0, count, &shape)
#define OBJECT(key, at, shape) ROW(key, OBJECT, false, at, 0, 0, &shape)
#define STACK(key, field) ARRAY(key, AT(field.frames), AT(field.count), frame)

#define AT(field) offsetof(struct report_frame, field)
static const struct json_field frame_fields[] = {
    FIELD("function", TEXT, AT(function)), FIELD("file", TEXT, AT(file)),        FIELD("line", U32, AT(line)),
    FIELD("object", TEXT, AT(object)),     FIELD("offset", ADDRESS, AT(offset)), FIELD("pc", ADDRESS, AT(pc)),
    FIELD("inlined", BOOL, AT(inlined)),
};
static const struct json_shape frame = SHAPE(struct report_frame, frame_fields);
#undef AT

#define AT(field) offsetof(struct report_place, field)
static const struct json_field place_fields[] = {
    FIELD("name", TEXT, AT(kernel)),
    FIELD("file", TEXT, AT(file)),
    FIELD("line", U32, AT(line)),
    IF(AT(thread_known), "block", DIM3, AT(block)),
    IF(AT(thread_known), "thread", DIM3, AT(thread)),
    FIELD("function", TEXT, AT(function)),
    FIELD("module", TEXT, AT(module)),
    FIELD("instruction", TEXT, AT(instruction)),
    FIELD("ptx_line", U32, AT(ptx_line)),
    STACK("frames", frames),
};
static const struct json_shape place = SHAPE(struct report_place, place_fields);
#undef AT

#define AT(field) offsetof(struct report_buffer, field)
static const struct json_field buffer_fields[] = {
    ALWAYS("base", ADDRESS, AT(base)),
    ALWAYS("size", U64, AT(size)),
    FIELD("name", TEXT, AT(name)),
    FIELD("made_by", TEXT, AT(made_by)),
    FIELD("freed_by", TEXT, AT(freed_by)),
    FIELD("thread", TEXT, AT(thread)),
    STACK("made_at", made_at),
    STACK("freed_at", freed_at),
};
static const struct json_shape buffer = SHAPE(struct report_buffer, buffer_fields);
#undef AT

#define AT(field) offsetof(struct report, field)
static const struct json_field access_fields[] = {
    FIELD("kind", ACCESS, AT(access)),
    FIELD("bytes", U64, AT(bytes)),
};
static const struct json_shape access_shape = SHAPE(struct report, access_fields);

static const struct json_field bytes_fields[] = {
    FIELD("address", ADDRESS, offsetof(struct report_bytes, base)),
    FIELD("bytes", BYTES, 0),
};
static const struct json_shape bytes = SHAPE(struct report_bytes, bytes_fields);

static const struct json_field error_fields[] = {
    ALWAYS("type", TYPE, AT(type)),
    ALWAYS("pid", INT, AT(pid)),
    ALWAYS("id", U64, AT(id)),
    FIELD("library", TEXT, AT(library)),
    ALWAYS("count", U64, AT(count)),
    ALWAYS("device", INT, AT(device)),
    FIELD("client", U32, AT(client)),
    IF(AT(has_address), "address", ADDRESS, AT(address)),
    OBJECT("access", 0, access_shape),
    FIELD("call", TEXT, AT(call)),
    OBJECT("kernel", AT(place), place),
    STACK("stack", stack),
    ARRAY("buffers", AT(buffers), AT(nbuffers), buffer),
    OBJECT("corrupted", AT(corrupted), bytes),
    TEXTS("suspects", AT(suspects), AT(nsuspects)),
    TEXTS("notes", AT(notes), AT(nnotes)),
};
#undef AT

#define AT(field) offsetof(struct report_start, field)
static const struct json_field start_fields[] = {
    ALWAYS("pid", INT, AT(pid)),           ALWAYS("parent", INT, AT(parent)),
    FIELD("program", TEXT, AT(program)),   FIELD("mode", TEXT, AT(mode)),
    FIELD("device", TEXT, AT(device)),     FIELD("version", TEXT, AT(version)),
    TEXTS("notes", AT(notes), AT(nnotes)),
};
#undef AT

#define AT(field) offsetof(struct report_value, field)
static const struct json_field value_fields[] = {
    FIELD("key", TEXT, AT(key)),
    ALWAYS("value", U64, AT(value)),
    FIELD("label", TEXT, AT(label)),
};
static const struct json_shape value = SHAPE(struct report_value, value_fields);
#undef AT

#define AT(field) offsetof(struct report_end, field)
static const struct json_field end_fields[] = {
    ALWAYS("pid", INT, AT(pid)),
    FIELD("library", TEXT, AT(library)),
    ALWAYS("errors", U64, AT(errors)),
    ALWAYS("suppressed", U64, AT(suppressed)),
    ARRAY("watched", AT(values), AT(nvalues), value),
    ARRAY("uncovered", AT(uncovered), AT(nuncovered), value),
};
#undef AT

#define AT(field) offsetof(struct report_space, field)
static const struct json_field space_fields[] = {
    FIELD("name", TEXT, AT(name)), ALWAYS("loads", U64, AT(loads)),     ALWAYS("stores", U64, AT(stores)),
    ALWAYS("read", U64, AT(read)), ALWAYS("written", U64, AT(written)),
};
static const struct json_shape space = SHAPE(struct report_space, space_fields);
#undef AT

#define AT(field) offsetof(struct report_kernel, field)
static const struct json_field kernel_fields[] = {
    FIELD("name", TEXT, AT(name)),
    FIELD("device_function", BOOL, AT(function)),
    FIELD("uncounted", BOOL, AT(uncounted)),
    FIELD("approximate", BOOL, AT(approximate)),
    ALWAYS("launches", U64, AT(launches)),
    ALWAYS("threads", U64, AT(threads)),
    ALWAYS("loads", U64, AT(loads)),
    ALWAYS("stores", U64, AT(stores)),
    ALWAYS("read", U64, AT(read)),
    ALWAYS("written", U64, AT(written)),
    ARRAY("spaces", AT(spaces), AT(nspaces), space),
};
static const struct json_shape kernel = SHAPE(struct report_kernel, kernel_fields);
#undef AT

#define AT(field) offsetof(struct report_counts, field)
static const struct json_field counts_fields[] = {
    ALWAYS("pid", INT, AT(pid)),
    ARRAY("kernels", AT(kernels), AT(nkernels), kernel),
};
#undef AT

#define AT(field) offsetof(struct report_access_place, field)
static const struct json_field access_place_fields[] = {
    FIELD("verdict", TEXT, AT(verdict)),   FIELD("file", TEXT, AT(file)),
    FIELD("line", U32, AT(line)),          FIELD("ptx_line", U32, AT(ptx_line)),
    FIELD("access", ACCESS, AT(access)),   FIELD("bytes", U32, AT(bytes)),
    ALWAYS("accesses", U64, AT(accesses)), ALWAYS("launches", U64, AT(launches)),
    FIELD("root", TEXT, AT(root)),         FIELD("why", TEXT, AT(why)),
    FIELD("help", TEXT, AT(help)),
};
static const struct json_shape access_place = SHAPE(struct report_access_place, access_place_fields);
#undef AT

#define AT(field) offsetof(struct report_explained, field)
static const struct json_field explained_fields[] = {
    FIELD("name", TEXT, AT(name)),
    FIELD("unread", BOOL, AT(unread)),
    ALWAYS("launches", U64, AT(launches)),
    ALWAYS("accesses", U64, AT(accesses)),
    ALWAYS("inside", U64, AT(inside)),
    ALWAYS("bounded", U64, AT(bounded)),
    ALWAYS("outside", U64, AT(outside)),
    ALWAYS("maybe_outside", U64, AT(maybe)),
    ALWAYS("not_bounded", U64, AT(unknown)),
    ALWAYS("unreachable", U64, AT(unreachable)),
    ALWAYS("median_ns", U64, AT(median)),
    ALWAYS("most_ns", U64, AT(most)),
    ARRAY("places", AT(places), AT(nplaces), access_place),
    FIELD("more_places", U64, AT(more)),
};
static const struct json_shape explained = SHAPE(struct report_explained, explained_fields);
#undef AT

#define AT(field) offsetof(struct report_proofs, field)
static const struct json_field proofs_fields[] = {
    ALWAYS("pid", INT, AT(pid)),
    ARRAY("kernels", AT(kernels), AT(nkernels), explained),
};
#undef AT

#define AT(field) offsetof(struct report_unchecked_kernel, field)
static const struct json_field unchecked_kernel_fields[] = {
    FIELD("name", TEXT, AT(name)),
    ALWAYS("launches", U64, AT(launches)),
};
static const struct json_shape unchecked_kernel =
    SHAPE(struct report_unchecked_kernel, unchecked_kernel_fields);
#undef AT

#define AT(field) offsetof(struct report_unchecked, field)
static const struct json_field unchecked_fields[] = {
    ALWAYS("pid", INT, AT(pid)),
    FIELD("before", U32, AT(before)),
    ALWAYS("all", U32, AT(all)),
    ARRAY("kernels", AT(kernels), AT(nkernels), unchecked_kernel),
};
#undef AT

// These two structs have no name: offsets of their fields count from the start of the line.
#define AT(field) offsetof(struct report_line, field)
static const struct json_field repeat_fields[] = {
    ALWAYS("pid", INT, AT(repeat.pid)),
    ALWAYS("id", U64, AT(repeat.id)),
    FIELD("library", TEXT, AT(repeat.library)),
    ALWAYS("count", U64, AT(repeat.count)),
};
static const struct json_field note_fields[] = {
    ALWAYS("pid", INT, AT(note.pid)),
    FIELD("text", TEXT, AT(note.text)),
};

const struct json_event json_shape_events[JSON_SHAPE_EVENTS] = {
    [REPORT_START] = {"start", AT(start), SHAPE(struct report_start, start_fields)},
    [REPORT_ERROR] = {"error", AT(error), SHAPE(struct report, error_fields)},
    [REPORT_REPEAT] = {"repeat", 0, SHAPE(struct report_line, repeat_fields)},
    [REPORT_NOTE] = {"note", 0, SHAPE(struct report_line, note_fields)},
    [REPORT_END] = {"end", AT(end), SHAPE(struct report_end, end_fields)},
    [REPORT_COUNTS] = {"counts", AT(counts), SHAPE(struct report_counts, counts_fields)},
    [REPORT_PROOFS] = {"proofs", AT(proofs), SHAPE(struct report_proofs, proofs_fields)},
    [REPORT_UNCHECKED] = {"unchecked", AT(unchecked), SHAPE(struct report_unchecked, unchecked_fields)},
};
