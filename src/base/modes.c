// SPDX-License-Identifier: MIT
#include "base/modes.h"

#include <stdio.h>

#include "base/option.h"

enum decides { NOTHING, LAYOUT, CODE, DECISIONS, BOTH };

static const char *const texts[DECISIONS] = {
    [LAYOUT] = "where buffers lie",
    [CODE] = "which code kernels are",
};

static const struct row {
    unsigned bit;
    const char *word;
    enum decides decides;
} rows[] = {
#define MODE(id, symbol, word, decides, help) {OPTION_MODE_##id, word, decides},
#define WITH(id, symbol)
    MODES(MODE, WITH)
#undef MODE
#undef WITH
};

static bool decides(const struct row *r, enum decides what)
{
    return r->decides == what || r->decides == BOTH;
}

bool modes_conflict(uint64_t modes, char *why, size_t size)
{
    const char *first[DECISIONS] = {NULL};
    static const struct {
        unsigned bit;
        const char *word;
    } alone[] = {{OPTION_MODE_OFF, "off"}, {OPTION_MODE_AUTO, "auto"}};
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
        if (modes >> alone[i].bit & 1 && modes != 1ull << alone[i].bit) {
            snprintf(why, size, "--mode=%s cannot be combined with other modes", alone[i].word);
            return true;
        }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (enum decides what = LAYOUT; what < DECISIONS; what++) {
            const struct row *r = &rows[i];
            if (!(modes >> r->bit & 1) || !decides(r, what))
                continue;
            if (first[what]) {
                snprintf(why, size, "--mode: %s and %s both decide %s; choose one of them", first[what],
                         r->word, texts[what]);
                return true;
            }
            first[what] = r->word;
        }
    return false;
}

uint64_t modes_for_device(uint64_t modes, bool cpu_device)
{
    if (modes != 1ull << OPTION_MODE_AUTO)
        return modes;
    return 1ull << (cpu_device ? OPTION_MODE_CHECK : OPTION_MODE_API);
}

static bool has_layout(uint64_t modes)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (modes >> rows[i].bit & 1 && decides(&rows[i], LAYOUT))
            return true;
    return false;
}

uint64_t modes_with_layout(uint64_t modes)
{
#define GIVES(id, layout)                                    \
    if (modes >> OPTION_MODE_##id & 1 && !has_layout(modes)) \
        modes |= 1ull << OPTION_MODE_##layout;
    MODES_LAYOUTS(GIVES)
#undef GIVES
    return modes;
}

bool modes_rewrite(const struct options *options)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (options->mode >> rows[i].bit & 1 && decides(&rows[i], CODE))
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
