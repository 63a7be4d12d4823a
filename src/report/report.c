// SPDX-License-Identifier: MIT
#include "report/report.h"

#include <string.h>

const struct report_row report_rows[REPORT_TYPES] = {
#define ERROR(id, name, family, cwe, text) {name, #family, text, cwe},
#include "report/errors.def"
#undef ERROR
};

int report_type_find(const char *name)
{
    for (int i = 0; i < REPORT_TYPES; i++)
        if (strcmp(report_rows[i].name, name) == 0)
            return i;
    return -1;
}
