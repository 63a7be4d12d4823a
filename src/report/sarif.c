// SPDX-License-Identifier: MIT
// The document has one run: the tool with a rule for each type of error, the CWE as its taxonomy, the
// program's invocation, and a result for each error. A result has the place of the error, the places of
// allocation and free as related locations and as the steps that lead to it, all stacks, and a fingerprint
// that does not change when lines move.
#include "report/sarif.h"

#include <stdio.h>

#include "report/fold.h"
#include "report/json_doc.h"

#define SCHEMA "https://json.schemastore.org/sarif-2.1.0.json"
#define ROOT "SRCROOT"

struct sarif {
    struct json_doc json;
    const struct document *d;
    struct out text;  // scratch for composed texts
};

static void say(struct sarif *s, const char *key, struct str text)
{
    json_doc_open(&s->json, key, '{');
    json_doc_str(&s->json, "text", text);
    json_doc_close(&s->json, '}');
}

static void say_cstr(struct sarif *s, const char *key, const char *text)
{
    say(s, key, str_from(text));
}

// Tool

static void write_rule(struct sarif *s, const struct report_row *row)
{
    struct json_doc *j = &s->json;
    char cwe[24], tag[40];
    snprintf(cwe, sizeof cwe, "%d", row->cwe);
    snprintf(tag, sizeof tag, "external/cwe/cwe-%d", row->cwe);
    json_doc_open(j, NULL, '{');
    json_doc_text(j, "id", row->name);
    say_cstr(s, "shortDescription", row->text);
    json_doc_open(j, "defaultConfiguration", '{');
    json_doc_text(j, "level", strcmp(row->family, "leakcheck") ? "error" : "warning");
    json_doc_close(j, '}');
    json_doc_open(j, "relationships", '[');
    json_doc_open(j, NULL, '{');
    json_doc_open(j, "target", '{');
    json_doc_text(j, "id", cwe);
    json_doc_open(j, "toolComponent", '{');
    json_doc_text(j, "name", "CWE");
    json_doc_close(j, '}');
    json_doc_close(j, '}');
    json_doc_open(j, "kinds", '[');
    json_doc_text(j, NULL, "superset");
    json_doc_close(j, ']');
    json_doc_close(j, '}');
    json_doc_close(j, ']');
    json_doc_open(j, "properties", '{');
    json_doc_open(j, "tags", '[');
    json_doc_text(j, NULL, "security");
    json_doc_text(j, NULL, tag);
    json_doc_close(j, ']');
    json_doc_close(j, '}');
    json_doc_close(j, '}');
}

static void write_tool(struct sarif *s)
{
    struct json_doc *j = &s->json;
    json_doc_open(j, "tool", '{');
    json_doc_open(j, "driver", '{');
    json_doc_text(j, "name", "moat");
    if (s->d->version)
        json_doc_text(j, "version", s->d->version);
    json_doc_open(j, "rules", '[');
    for (int i = 0; i < REPORT_TYPES; i++)
        write_rule(s, &report_rows[i]);
    json_doc_close(j, ']');
    json_doc_open(j, "supportedTaxonomies", '[');
    json_doc_open(j, NULL, '{');
    json_doc_text(j, "name", "CWE");
    json_doc_close(j, '}');
    json_doc_close(j, ']');
    json_doc_close(j, '}');
    json_doc_close(j, '}');
}

static bool cwe_seen(int row)
{
    for (int i = 0; i < row; i++)
        if (report_rows[i].cwe == report_rows[row].cwe)
            return true;
    return false;
}

static void write_taxonomy(struct sarif *s)
{
    struct json_doc *j = &s->json;
    json_doc_open(j, "taxonomies", '[');
    json_doc_open(j, NULL, '{');
    json_doc_text(j, "name", "CWE");
    json_doc_text(j, "organization", "MITRE");
    say_cstr(s, "shortDescription", "The MITRE Common Weakness Enumeration");
    json_doc_open(j, "taxa", '[');
    for (int i = 0; i < REPORT_TYPES; i++) {
        char cwe[24];
        if (cwe_seen(i))
            continue;
        snprintf(cwe, sizeof cwe, "%d", report_rows[i].cwe);
        json_doc_open(j, NULL, '{');
        json_doc_text(j, "id", cwe);
        json_doc_close(j, '}');
    }
    json_doc_close(j, ']');
    json_doc_close(j, '}');
    json_doc_close(j, ']');
}

// Invocation

static void write_notification(struct sarif *s, const char *level, const char *text)
{
    json_doc_open(&s->json, NULL, '{');
    json_doc_text(&s->json, "level", level);
    char demangled[4096];
    say_cstr(s, "message", demangle_text(&s->d->demangle, text, demangled, sizeof demangled));
    json_doc_close(&s->json, '}');
}

static void write_notifications(struct sarif *s)
{
    json_doc_open(&s->json, "toolExecutionNotifications", '[');
    for (size_t i = 0; i < s->d->count; i++) {
        const struct report_line *l = &s->d->lines[i];
        for (uint32_t n = 0; l->event == REPORT_START && n < l->start.nnotes; n++)
            write_notification(s, "warning", l->start.notes[n]);
        if (l->event == REPORT_NOTE && l->note.text)
            write_notification(s, "note", l->note.text);
    }
    json_doc_close(&s->json, ']');
}

static void write_values(struct sarif *s, const char *key, const struct report_value *values, uint32_t count)
{
    json_doc_open(&s->json, key, '{');
    for (uint32_t i = 0; i < count; i++)
        if (values[i].key)
            json_doc_int(&s->json, values[i].key, (int64_t)(values[i].value & INT64_MAX));
    json_doc_close(&s->json, '}');
}

// Writes what was watched in each process: "no errors" means little without it.
static void write_coverage(struct sarif *s)
{
    struct json_doc *j = &s->json;
    json_doc_open(j, "properties", '{');
    json_doc_open(j, "processes", '[');
    for (size_t i = 0; i < s->d->count; i++) {
        const struct report_line *l = &s->d->lines[i];
        if (l->event != REPORT_END)
            continue;
        json_doc_open(j, NULL, '{');
        json_doc_int(j, "pid", l->end.pid);
        if (l->end.library)
            json_doc_text(j, "library", l->end.library);
        json_doc_int(j, "errors", (int64_t)(l->end.errors & INT64_MAX));
        json_doc_int(j, "suppressed", (int64_t)(l->end.suppressed & INT64_MAX));
        write_values(s, "watched", l->end.values, l->end.nvalues);
        write_values(s, "uncovered", l->end.uncovered, l->end.nuncovered);
        json_doc_close(j, '}');
    }
    json_doc_close(j, ']');
    json_doc_close(j, '}');
}

static void write_invocation(struct sarif *s)
{
    struct json_doc *j = &s->json;
    json_doc_open(j, "invocations", '[');
    json_doc_open(j, NULL, '{');
    json_doc_bool(j, "executionSuccessful", true);
    if (s->d->exit_known)
        json_doc_int(j, "exitCode", s->d->exit_code);
    if (s->d->argc) {
        json_doc_open(j, "arguments", '[');
        for (int i = 0; i < s->d->argc; i++)
            json_doc_text(j, NULL, s->d->argv[i]);
        json_doc_close(j, ']');
    }
    write_notifications(s);
    write_coverage(s);
    json_doc_close(j, '}');
    json_doc_close(j, ']');
}

// Places

static bool plain_in_uri(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           strchr("-._~/+@=,", c);
}

static void put_uri(struct out *o, const char *path)
{
    for (const unsigned char *p = (const unsigned char *)path; *p; p++) {
        if (plain_in_uri(*p)) {
            out_char(o, (char)*p);
        } else {
            out_char(o, '%');
            out_hex(o, *p, 2);
        }
    }
}

// Returns the text composed since the last call.
static struct str take(struct sarif *s)
{
    struct str text = {s->text.buf, s->text.len};
    s->text.len = 0;
    return text;
}

static void write_artifact(struct sarif *s, const char *path)
{
    const char *root = s->d->root;
    size_t n = root ? strlen(root) : 0;
    while (n && root[n - 1] == '/')
        n--;
    bool below = n && strncmp(path, root, n) == 0 && path[n] == '/' && path[n + 1];
    bool absolute = path[0] == '/' && !below;
    out_cstr(&s->text, absolute ? "file://" : "");
    put_uri(&s->text, below ? path + n + 1 : path);
    json_doc_open(&s->json, "artifactLocation", '{');
    json_doc_str(&s->json, "uri", take(s));
    if (root && !absolute)
        json_doc_text(&s->json, "uriBaseId", ROOT);
    json_doc_close(&s->json, '}');
}

struct place {
    const char *file, *function, *object;
    const char
        *instead;  // a file to name if there is no source: some readers refuse results without a location
    uint32_t line;
    uint64_t offset;
};

static struct place place_of_frame(const struct report_frame *f)
{
    return f ? (struct place){f->file, f->function, f->object, NULL, f->line, f->offset} : (struct place){0};
}

// Writes the members of a location, without its braces.
static void write_place(struct sarif *s, struct place at)
{
    struct json_doc *j = &s->json;
    if (at.file || at.instead) {
        json_doc_open(j, "physicalLocation", '{');
        write_artifact(s, at.file ? at.file : at.instead);
        if (at.file && at.line) {
            json_doc_open(j, "region", '{');
            json_doc_int(j, "startLine", at.line);
            json_doc_close(j, '}');
        }
        json_doc_close(j, '}');
    }
    if (!at.function && !at.object)
        return;
    json_doc_open(j, "logicalLocations", '[');
    json_doc_open(j, NULL, '{');
    if (at.function) {
        const char *name = demangle_name(&s->d->demangle, at.function);
        json_doc_text(j, "fullyQualifiedName", name);
        if (name != at.function)
            json_doc_text(j, "decoratedName", at.function);
        json_doc_text(j, "kind", "function");
    } else {
        out_fmt(&s->text, "%s+0x%llx", at.object, (unsigned long long)at.offset);
        json_doc_str(j, "fullyQualifiedName", take(s));
        json_doc_text(j, "kind", "module");
    }
    json_doc_close(j, '}');
    json_doc_close(j, ']');
}

static void write_location(struct sarif *s, const char *key, struct place at, const char *message, int id)
{
    json_doc_open(&s->json, key, '{');
    if (id)
        json_doc_int(&s->json, "id", id);
    write_place(s, at);
    if (message)
        say_cstr(s, "message", message);
    json_doc_close(&s->json, '}');
}

static void write_stack(struct sarif *s, const char *message, const struct report_stack *stack)
{
    struct json_doc *j = &s->json;
    if (!stack->count)
        return;
    json_doc_open(j, NULL, '{');
    say_cstr(s, "message", message);
    json_doc_open(j, "frames", '[');
    for (uint32_t i = 0; i < stack->count; i++) {
        json_doc_open(j, NULL, '{');
        write_location(s, "location", place_of_frame(&stack->frames[i]), NULL, 0);
        if (stack->frames[i].object)
            json_doc_text(j, "module", stack->frames[i].object);
        json_doc_close(j, '}');
    }
    json_doc_close(j, ']');
    json_doc_close(j, '}');
}

// Results

static struct place place_of(const struct report *r)
{
    const struct report_place *at = &r->place;
    const char *device = report_device_name(at);
    const struct report_frame *from =
        device && report_is_toolkit_header(at->file) ? report_frame_of_program(&r->stack) : NULL;
    if (from && from->file)
        return (struct place){from->file, device, NULL, NULL, from->line, 0};
    if (device && at->file)
        return (struct place){at->file, device, NULL, NULL, at->line, 0};
    const struct report_stack *stack = &r->stack;
    if (r->type == REPORT_LEAK && r->nbuffers)
        stack = &r->buffers[0].made_at;
    struct place place = place_of_frame(report_frame_of_program(stack));
    // The file is the program's place next to it; readers want one.
    if (device || r->nsuspects)
        place.function = device ? device : r->suspects[0];
    return place;
}

// A step that led to the error: written once as a related location and once in the code flow.
struct step {
    const char *message;
    const struct report_stack *stack;
};

static size_t find_steps(const struct report *r, struct step steps[3])
{
    size_t n = 0;
    const struct report_buffer *b = r->nbuffers ? &r->buffers[0] : NULL;
    if (b && b->made_at.count)
        steps[n++] = (struct step){"the buffer was allocated here", &b->made_at};
    if (b && b->freed_at.count)
        steps[n++] = (struct step){"the buffer was freed here", &b->freed_at};
    if (r->place.kernel && r->stack.count)
        steps[n++] = (struct step){"the kernel was launched here", &r->stack};
    return n;
}

static void write_flow(struct sarif *s, const struct report *r, const struct step *steps, size_t n)
{
    struct json_doc *j = &s->json;
    json_doc_open(j, "codeFlows", '[');
    json_doc_open(j, NULL, '{');
    json_doc_open(j, "threadFlows", '[');
    json_doc_open(j, NULL, '{');
    json_doc_open(j, "locations", '[');
    for (size_t i = 0; i <= n; i++) {
        struct place at = i < n ? place_of_frame(report_frame_of_program(steps[i].stack)) : place_of(r);
        json_doc_open(j, NULL, '{');
        write_location(s, "location", at, i < n ? steps[i].message : report_rows[r->type].text, 0);
        json_doc_close(j, '}');
    }
    json_doc_close(j, ']');
    json_doc_close(j, '}');
    json_doc_close(j, ']');
    json_doc_close(j, '}');
    json_doc_close(j, ']');
}

static void write_steps(struct sarif *s, const struct report *r)
{
    struct step steps[3];
    size_t n = find_steps(r, steps);
    if (n) {
        json_doc_open(&s->json, "relatedLocations", '[');
        for (size_t i = 0; i < n; i++)
            write_location(s, NULL, place_of_frame(report_frame_of_program(steps[i].stack)), steps[i].message,
                           (int)i + 1);
        json_doc_close(&s->json, ']');
        write_flow(s, r, steps, n);
    }
    if (!n && !r->stack.count && !r->place.frames.count)
        return;
    json_doc_open(&s->json, "stacks", '[');
    if (!r->place.kernel)
        write_stack(s, "the error was found here", &r->stack);
    write_stack(s, "the kernel was here", &r->place.frames);
    for (size_t i = 0; i < n; i++)
        write_stack(s, steps[i].message, steps[i].stack);
    json_doc_close(&s->json, ']');
}

static const char *program_of(const struct document *d, int pid)
{
    for (size_t i = 0; i < d->count; i++)
        if (d->lines[i].event == REPORT_START && d->lines[i].start.pid == pid)
            return d->lines[i].start.program;
    return d->argc ? d->argv[0] : NULL;
}

static void write_properties(struct sarif *s, const struct report *r)
{
    struct json_doc *j = &s->json;
    json_doc_open(j, "properties", '{');
    json_doc_int(j, "pid", r->pid);
    json_doc_int(j, "device", r->device);
    if (r->client)
        json_doc_int(j, "client", r->client);
    if (r->has_address) {
        out_fmt(&s->text, "0x%llx", (unsigned long long)r->address);
        json_doc_str(j, "address", take(s));
    }
    if (r->call)
        json_doc_text(j, "call", r->call);
    if (r->place.kernel)
        json_doc_text(j, "kernel", r->place.kernel);
    if (r->nnotes) {
        json_doc_open(j, "notes", '[');
        for (uint32_t i = 0; i < r->nnotes; i++) {
            char text[4096];
            json_doc_text(j, NULL, demangle_text(&s->d->demangle, r->notes[i], text, sizeof text));
        }
        json_doc_close(j, ']');
    }
    json_doc_close(j, '}');
}

static void write_result(struct sarif *s, const struct report_line *line)
{
    struct json_doc *j = &s->json;
    const struct report *r = &line->error;
    struct place at = place_of(r);
    at.instead = at.object ? at.object : program_of(s->d, r->pid);
    uint64_t count = document_count(s->d, line);
    json_doc_open(j, NULL, '{');
    json_doc_text(j, "ruleId", report_rows[r->type].name);
    json_doc_int(j, "ruleIndex", r->type);
    json_doc_text(j, "level", r->type == REPORT_LEAK ? "warning" : "error");
    document_say(s->d, r, &s->text);
    say(s, "message", take(s));
    if (at.file || at.function || at.instead) {
        json_doc_open(j, "locations", '[');
        write_location(s, NULL, at, NULL, 0);
        json_doc_close(j, ']');
    }
    write_steps(s, r);
    json_doc_open(j, "partialFingerprints", '{');
    out_fmt(&s->text, "%016llx", (unsigned long long)fold_name_key(r, false));
    json_doc_str(j, "moatError/v1", take(s));
    json_doc_close(j, '}');
    json_doc_int(j, "occurrenceCount", (int64_t)((count ? count : 1) & INT64_MAX));
    write_properties(s, r);
    json_doc_close(j, '}');
}

static void write_root(struct sarif *s)
{
    if (!s->d->root || s->d->root[0] != '/')
        return;
    out_lit(&s->text, "file://");
    put_uri(&s->text, s->d->root);
    if (s->text.buf[s->text.len - 1] != '/')
        out_char(&s->text, '/');
    json_doc_open(&s->json, "originalUriBaseIds", '{');
    json_doc_open(&s->json, ROOT, '{');
    json_doc_str(&s->json, "uri", take(s));
    json_doc_close(&s->json, '}');
    json_doc_close(&s->json, '}');
}

void sarif_write(struct out *o, const struct document *d)
{
    struct sarif s = {.json = {.o = o}, .d = d};
    struct json_doc *j = &s.json;
    if (out_to_memory(&s.text)) {
        o->error = o->error ? o->error : s.text.error;
        return;
    }
    json_doc_open(j, NULL, '{');
    json_doc_text(j, "$schema", SCHEMA);
    json_doc_text(j, "version", "2.1.0");
    json_doc_open(j, "runs", '[');
    json_doc_open(j, NULL, '{');
    write_tool(&s);
    write_taxonomy(&s);
    write_invocation(&s);
    write_root(&s);
    json_doc_open(j, "results", '[');
    for (size_t i = 0; i < d->count; i++)
        if (d->lines[i].event == REPORT_ERROR)
            write_result(&s, &d->lines[i]);
    json_doc_close(j, ']');
    json_doc_close(j, '}');
    json_doc_close(j, ']');
    json_doc_close(j, '}');
    out_char(o, '\n');
    o->error = o->error ? o->error : s.text.error;
    out_close(&s.text);
}
