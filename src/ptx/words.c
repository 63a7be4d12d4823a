// SPDX-License-Identifier: MIT
#include "ptx/words.h"

const char *const words_select[WORDS_SELECT] = {
    "", ".x", ".y", ".z", ".w", ".r", ".g", ".b", ".a", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1",
};

const char *const words_linkage[WORDS_LINKAGE] = {"", ".visible", ".extern", ".weak", ".common"};
