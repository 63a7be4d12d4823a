// SPDX-License-Identifier: MIT
// Checks what readers of SARIF rely on: required properties, and that indices and references are valid.
#include "report/sarif.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "report/report_testing.h"

static struct report_line lines[TESTING_EVENTS];
static const char *const arguments[] = {"./scale", "--fast run"};

static struct document document(void)
{
    for (int i = 0; i < TESTING_EVENTS; i++)
        lines[i] = testing_event(i);
    return (struct document){.lines = lines,
                             .count = TESTING_EVENTS,
                             .demangle = {testing_demangle, NULL},
                             .version = "0.1.0",
                             .root = "/src",
                             .argc = 2,
                             .argv = arguments,
                             .exit_code = 3,
                             .exit_known = true};
}

static cJSON *write(const struct document *d)
{
    struct out o;
    out_to_memory(&o);
    sarif_write(&o, d);
    assert_int_equal(o.error, 0);
    cJSON *root = cJSON_ParseWithLength(o.buf, o.len);
    assert_non_null(root);
    out_close(&o);
    return root;
}

// Returns the value at a path such as "runs/0/tool".
static cJSON *at(cJSON *from, const char *path)
{
    char *copy = strdup(path), *rest = copy;
    for (char *part; from && (part = strsep(&rest, "/"));)
        from = cJSON_IsArray(from) ? cJSON_GetArrayItem(from, atoi(part))
                                   : cJSON_GetObjectItemCaseSensitive(from, part);
    free(copy);
    return from;
}

static void expect_text(cJSON *from, const char *path, const char *text)
{
    const char *value = cJSON_GetStringValue(at(from, path));
    assert_non_null(value);
    assert_string_equal(value, text);
}

static void expect_number(cJSON *from, const char *path, double number)
{
    assert_true(cJSON_IsNumber(at(from, path)));
    assert_true(cJSON_GetNumberValue(at(from, path)) == number);
}

static void good_frame_of_the_document(void **state)
{
    struct document d = document();
    cJSON *root = write(&d);
    expect_text(root, "version", "2.1.0");
    assert_non_null(at(root, "$schema"));
    expect_text(root, "runs/0/tool/driver/name", "moat");
    expect_text(root, "runs/0/tool/driver/version", "0.1.0");
    assert_true(cJSON_IsTrue(at(root, "runs/0/invocations/0/executionSuccessful")));
    expect_number(root, "runs/0/invocations/0/exitCode", 3);
    expect_text(root, "runs/0/invocations/0/arguments/1", "--fast run");
    expect_text(root, "runs/0/invocations/0/toolExecutionNotifications/0/message/text", testing_missing[0]);
    expect_number(root, "runs/0/invocations/0/properties/processes/0/watched/kernels_launched", 1500);
    expect_text(root, "runs/0/originalUriBaseIds/SRCROOT/uri", "file:///src/");
    assert_int_equal(cJSON_GetArraySize(at(root, "runs/0/results")), 4);
    cJSON_Delete(root);
}

static void good_rules_have_weaknesses(void **state)
{
    struct document d = document();
    cJSON *root = write(&d), *rules = at(root, "runs/0/tool/driver/rules"),
          *taxa = at(root, "runs/0/taxonomies/0/taxa");
    assert_int_equal(cJSON_GetArraySize(rules), REPORT_TYPES);
    for (int i = 0; i < REPORT_TYPES; i++) {
        cJSON *rule = cJSON_GetArrayItem(rules, i), *taxon;
        expect_text(rule, "id", report_rows[i].name);
        assert_non_null(at(rule, "shortDescription/text"));
        expect_text(rule, "relationships/0/target/toolComponent/name", "CWE");
        const char *cwe = cJSON_GetStringValue(at(rule, "relationships/0/target/id"));
        assert_int_equal(atoi(cwe), report_rows[i].cwe);
        int found = 0;
        cJSON_ArrayForEach(taxon, taxa) found += strcmp(cJSON_GetStringValue(at(taxon, "id")), cwe) == 0;
        assert_int_equal(found, 1);
    }
    cJSON_Delete(root);
}

static void good_results(void **state)
{
    struct document d = document();
    cJSON *root = write(&d), *r = at(root, "runs/0/results/0");
    expect_text(r, "ruleId", "heap-buffer-overflow");
    expect_number(r, "ruleIndex", REPORT_HEAP_OVERFLOW);
    expect_text(r, "level", "error");
    expect_text(r, "message/text",
                "access behind the end of a buffer: write of 4 bytes in kernel scale(float*, int), "
                "0 bytes after a buffer of 1024 bytes from cuMemAlloc_v2");
    expect_text(r, "locations/0/physicalLocation/artifactLocation/uri", "scale.cu");
    expect_text(r, "locations/0/physicalLocation/artifactLocation/uriBaseId", "SRCROOT");
    expect_number(r, "locations/0/physicalLocation/region/startLine", 7);
    expect_text(r, "locations/0/logicalLocations/0/fullyQualifiedName", "scale(float*, int)");
    expect_text(r, "locations/0/logicalLocations/0/decoratedName", "_Z5scalePfi");
    expect_text(r, "relatedLocations/0/message/text", "the buffer was allocated here");
    expect_number(r, "relatedLocations/0/physicalLocation/region/startLine", 19);
    expect_number(r, "relatedLocations/1/physicalLocation/region/startLine", 44);
    expect_number(r, "codeFlows/0/threadFlows/0/locations/2/location/physicalLocation/region/startLine", 7);
    expect_text(r, "stacks/1/frames/0/location/logicalLocations/0/fullyQualifiedName",
                "/opt/app/libcudart.so.12+0x1111");
    expect_text(r, "stacks/1/frames/0/module", "/opt/app/libcudart.so.12");
    expect_number(r, "occurrenceCount", 1234);
    expect_text(r, "properties/address", "0x7f2a00000400");
    assert_null(at(r, "properties/client"));
    expect_number(root, "runs/0/results/1/properties/client", 3);
    expect_text(root, "runs/0/results/3/level", "warning");
    expect_number(root, "runs/0/results/3/locations/0/physicalLocation/region/startLine", 19);
    cJSON_Delete(root);
}

// The fingerprint of an error is unchanged when lines move, and differs between errors.
static void good_fingerprints(void **state)
{
    struct document d = document();
    cJSON *before = write(&d);
    lines[1].error.place.line += 5;
    lines[1].error.address += 16;
    cJSON *after = write(&d);
    cJSON *a = at(before, "runs/0/results/0/partialFingerprints")->child;
    assert_string_equal(a->string, "moatError/v1");
    assert_int_equal(strlen(a->valuestring), 16);
    assert_string_equal(a->valuestring,
                        at(after, "runs/0/results/0/partialFingerprints")->child->valuestring);
    assert_string_not_equal(a->valuestring,
                            at(before, "runs/0/results/2/partialFingerprints")->child->valuestring);
    cJSON_Delete(before);
    cJSON_Delete(after);
}

static void bad_names_are_encoded(void **state)
{
    struct document d = document();
    lines[1].error.place.file = "/other dir/\xff\"%\n.cu";
    lines[1].error.place.kernel = "\xff\"\\\x01";
    cJSON *root = write(&d), *r = at(root, "runs/0/results/0");
    expect_text(r, "locations/0/physicalLocation/artifactLocation/uri",
                "file:///other%20dir/%FF%22%25%0A.cu");
    assert_null(at(r, "locations/0/physicalLocation/artifactLocation/uriBaseId"));
    expect_text(r, "locations/0/logicalLocations/0/fullyQualifiedName", "?\"\\\x01");
    cJSON_Delete(root);
}

// Without source lines, a result is located in the program: a runtime's object file is nobody's place.
static void good_results_always_lie_somewhere(void **state)
{
    struct document d = document();
    lines[1].error.place.file = NULL;
    lines[1].error.stack.count = 0;
    lines[3].error.stack.count = 1;
    cJSON *root = write(&d);
    expect_text(root, "runs/0/results/0/locations/0/physicalLocation/artifactLocation/uri", "./scale");
    expect_text(root, "runs/0/results/0/locations/0/logicalLocations/0/fullyQualifiedName",
                "scale(float*, int)");
    expect_text(root, "runs/0/results/2/locations/0/physicalLocation/artifactLocation/uri", "./scale");
    assert_null(at(root, "runs/0/results/2/locations/0/physicalLocation/region"));
    cJSON_Delete(root);
}

static void good_nothing_happened(void **state)
{
    struct document d = {0};
    cJSON *root = write(&d);
    assert_true(cJSON_IsArray(at(root, "runs/0/results")));
    assert_int_equal(cJSON_GetArraySize(at(root, "runs/0/results")), 0);
    assert_null(at(root, "runs/0/invocations/0/exitCode"));
    cJSON_Delete(root);
}

static void bad_memory_runs_out(void **state)
{
    struct document d = document();
    struct out o;
    out_to_memory(&o);
    mem_fail_after(0);
    sarif_write(&o, &d);
    mem_fail_after(-1);
    assert_int_equal(o.error, -ENOMEM);
    out_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_frame_of_the_document),
        cmocka_unit_test(good_rules_have_weaknesses),
        cmocka_unit_test(good_results),
        cmocka_unit_test(good_fingerprints),
        cmocka_unit_test(bad_names_are_encoded),
        cmocka_unit_test(good_nothing_happened),
        cmocka_unit_test(good_results_always_lie_somewhere),
        cmocka_unit_test(bad_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
