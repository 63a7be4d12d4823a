// SPDX-License-Identifier: MIT
#include "base/modes.h"

#include <stdio.h>

#include "base/option.h"

// Bits, of which a mode may have several.
enum decides { NOTHING = 0, LAYOUT = 1, CODE = 2, DECISIONS = 2 };

static const char *const texts[DECISIONS] = {"where buffers lie", "which code kernels are"};

static const struct row {
    unsigned bit;
    const char *word;
    unsigned decides;  // enum decides
} rows[] = {
#define MODE(id, symbol, word, decides, help) {OPTION_MODE_##id, word, decides},
#define WITH(id, symbol)
    MODES(MODE, WITH)
#undef MODE
#undef WITH
};

bool modes_conflict(uint64_t modes, char *why, size_t size)
{
    const char *first[DECISIONS] = {NULL};
    if (modes >> OPTION_MODE_OFF & 1 && modes != 1ull << OPTION_MODE_OFF) {
        snprintf(why, size, "--mode=off cannot be combined with other modes");
        return true;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        for (unsigned what = 0; modes >> r->bit & 1 && what < DECISIONS; what++) {
            if (!(r->decides >> what & 1))
                continue;
            if (first[what]) {
                snprintf(why, size, "--mode: %s and %s both decide %s; choose one of them", first[what],
                         r->word, texts[what]);
                return true;
            }
            first[what] = r->word;
        }
    }
    return false;
}

bool modes_rewrite(const struct options *options)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (options->mode >> rows[i].bit & 1 && rows[i].decides & CODE)
            return true;
#define MODE(...)
#define WITH(id, symbol)                                          \
    if (options->mode >> OPTION_MODE_##id & 1 && options->symbol) \
        return true;
    MODES(MODE, WITH)
#undef MODE
#undef WITH
    return false;
}
