// SPDX-License-Identifier: MIT
#include "report/xml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "report/report_testing.h"

static char *write(struct report_line *lines, size_t count)
{
    struct document d = {.lines = lines, .count = count, .demangle = {testing_demangle, NULL}};
    struct out o;
    out_to_memory(&o);
    xml_write(&o, &d);
    assert_int_equal(o.error, 0);
    char *text = strndup(o.buf, o.len);
    out_close(&o);
    return text;
}

static void good_record(void **state)
{
    struct report_line line = testing_overflow();
    line.error.stack.count = 2;
    char *text = write(&line, 1);
    assert_string_equal(text,
                        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
                        "<ComputeSanitizerOutput>\n"
                        "  <record>\n"
                        "    <kind>Precise</kind>\n"
                        "    <level>Error</level>\n"
                        "    <who>\n"
                        "      <threadIdx>\n"
                        "        <x>0</x>\n        <y>0</y>\n        <z>0</z>\n"
                        "      </threadIdx>\n"
                        "      <blockIdx>\n"
                        "        <x>1</x>\n        <y>0</y>\n        <z>0</z>\n"
                        "      </blockIdx>\n"
                        "    </who>\n"
                        "    <what>\n"
                        "      <text>access behind the end of a buffer: write of 4 bytes in kernel "
                        "scale(float*, int), 0 bytes after a buffer of 1024 bytes from cuMemAlloc_v2</text>\n"
                        "      <space>__global__</space>\n"
                        "      <size>4</size>\n"
                        "      <direction>write</direction>\n"
                        "      <error>heap-buffer-overflow</error>\n"
                        "      <address>0x7f2a00000400</address>\n"
                        "      <api>cuLaunchKernel</api>\n"
                        "    </what>\n"
                        "    <where>\n"
                        "      <func>scale(float*, int)</func>\n"
                        "      <path>/src/scale.cu</path>\n"
                        "      <line>7</line>\n"
                        "    </where>\n"
                        "    <hostStack>\n"
                        "      <saveLocation>kernel launch time</saveLocation>\n"
                        "      <frame>\n"
                        "        <module>/opt/app/libcudart.so.12</module>\n"
                        "        <pc>0x1111</pc>\n"
                        "      </frame>\n"
                        "      <frame>\n"
                        "        <func>main</func>\n"
                        "        <path>/src/scale.cu</path>\n"
                        "        <line>44</line>\n"
                        "        <module>/opt/app/scale</module>\n"
                        "        <pc>0x1300</pc>\n"
                        "      </frame>\n"
                        "    </hostStack>\n"
                        "    <allocation>\n"
                        "      <address>0x7f2a00000000</address>\n"
                        "      <size>1024</size>\n"
                        "      <api>cuMemAlloc_v2</api>\n"
                        "    </allocation>\n"
                        "    <hostStack>\n"
                        "      <saveLocation>allocation time</saveLocation>\n"
                        "      <frame>\n"
                        "        <func>_Z4makei</func>\n"
                        "        <path>/src/scale.cu</path>\n"
                        "        <line>19</line>\n"
                        "        <module>/opt/app/scale</module>\n"
                        "        <pc>0x1234</pc>\n"
                        "      </frame>\n"
                        "      <frame>\n"
                        "        <func>main</func>\n"
                        "        <path>/src/scale.cu</path>\n"
                        "        <line>40</line>\n"
                        "        <module>/opt/app/scale</module>\n"
                        "        <pc>0x1234</pc>\n"
                        "      </frame>\n"
                        "    </hostStack>\n"
                        "    <pid>4711</pid>\n"
                        "    <count>1</count>\n"
                        "  </record>\n"
                        "</ComputeSanitizerOutput>\n");
    free(text);
}

// Every element that is opened is closed, in order.
static void good_all_events_are_well_formed(void **state)
{
    struct report_line lines[TESTING_EVENTS];
    for (int i = 0; i < TESTING_EVENTS; i++)
        lines[i] = testing_event(i);
    lines[1].error.call = "<&>\"'\x01\x1b\xff\xef\xbf\xbf\xc2\x85]]>";
    char *text = write(lines, TESTING_EVENTS), *open[16];
    int depth = 0;
    for (char *p = strchr(text, '\n'); (p = strchr(p, '<')); p++) {
        size_t n = strcspn(p, ">");
        if (p[1] == '/') {
            assert_true(depth > 0);
            assert_memory_equal(open[--depth] + 1, p + 2, n - 1);
        } else {
            assert_true(depth < 16);
            open[depth++] = p;
        }
    }
    assert_int_equal(depth, 0);
    assert_non_null(strstr(text, "<api>&lt;&amp;&gt;\"'?????]]&gt;</api>"));
    assert_non_null(strstr(text, "<count>1234</count>"));
    assert_non_null(strstr(text, "<kind>Leak</kind>"));
    assert_non_null(strstr(text, "<kind>Api</kind>"));
    assert_non_null(strstr(text, "<key>kernels_launched</key>"));
    assert_non_null(strstr(text, "    <pid>4711</pid>\n    <client>3</client>\n    <count>"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_record),
        cmocka_unit_test(good_all_events_are_well_formed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
