// SPDX-License-Identifier: MIT
// Which cases there are.
#ifndef MOAT_TEST_GOLDEN_SAMPLING_CASES_H
#define MOAT_TEST_GOLDEN_SAMPLING_CASES_H

#include "sampling.h"

static const struct {
    CUarray_format format;
    const char *name;
    bool is_float, is_signed, narrow;
} sampling_formats[] = {
    {CU_AD_FORMAT_FLOAT, "f32", true, true, false},
    {CU_AD_FORMAT_HALF, "f16", true, true, false},
    {CU_AD_FORMAT_UNSIGNED_INT8, "u8", false, false, true},
    {CU_AD_FORMAT_SIGNED_INT8, "s8", false, true, true},
    {CU_AD_FORMAT_UNSIGNED_INT16, "u16", false, false, true},
    {CU_AD_FORMAT_SIGNED_INT16, "s16", false, true, true},
    {CU_AD_FORMAT_UNSIGNED_INT32, "u32", false, false, false},
    {CU_AD_FORMAT_SIGNED_INT32, "s32", false, true, false},
};
enum { SAMPLING_FORMATS = sizeof sampling_formats / sizeof *sampling_formats };

static const char *const mode_names[] = {"wrap", "clamp", "mirror", "border"};

static const struct {
    const char *name, *geometry, *floats, *integers;
    uint8_t words[4], iwords[4];
    unsigned width, height, depth, flags;
} shapes[] = {
    [SHAPE_1D] = {"1d", "1d", "{%x0}", "{%x0}", {WORD_X}, {WORD_IX}, 13, 0, 0, 0},
    [SHAPE_2D] = {"2d", "2d", "{%x0, %x1}", "{%x0, %x1}", {WORD_X, WORD_Y}, {WORD_IX, WORD_IY}, 13, 7, 0, 0},
    [SHAPE_3D] = {"3d",
                  "3d",
                  "{%x0, %x1, %x2, %x2}",
                  "{%x0, %x1, %x2, %x2}",
                  {WORD_X, WORD_Y, WORD_Z},
                  {WORD_IX, WORD_IY, WORD_IZ},
                  13,
                  7,
                  5,
                  0},
    [SHAPE_A1D] = {"a1d",
                   "a1d",
                   "{%x0, %x1}",
                   "{%x0, %x1}",
                   {WORD_LAYER, WORD_X},
                   {WORD_LAYER, WORD_IX},
                   13,
                   0,
                   5,
                   CUDA_ARRAY3D_LAYERED},
    [SHAPE_A2D] = {"a2d",
                   "a2d",
                   "{%x0, %x1, %x2, %x2}",
                   "{%x0, %x1, %x2, %x2}",
                   {WORD_LAYER, WORD_X, WORD_Y},
                   {WORD_LAYER, WORD_IX, WORD_IY},
                   13,
                   7,
                   5,
                   CUDA_ARRAY3D_LAYERED},
    [SHAPE_CUBE] = {"cube",
                    "cube",
                    "{%x0, %x1, %x2, %x2}",
                    NULL,
                    {WORD_DIRECTION, WORD_DIRECTION, WORD_DIRECTION},
                    {0},
                    9,
                    9,
                    1,
                    CUDA_ARRAY3D_CUBEMAP},
    [SHAPE_ACUBE] = {"acube",
                     "acube",
                     "{%x0, %x1, %x2, %x3}",
                     NULL,
                     {WORD_LAYER, WORD_DIRECTION, WORD_DIRECTION, WORD_DIRECTION},
                     {0},
                     9,
                     9,
                     3,
                     CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED},
    [SHAPE_LINEAR] = {"linear", "1d", NULL, "{%x0}", {0}, {WORD_IX}, 200, 0, 0, 0},
    [SHAPE_PITCH] =
        {"pitch", "2d", "{%x0, %x1}", "{%x0, %x1}", {WORD_X, WORD_Y}, {WORD_IX, WORD_IY}, 13, 7, 0, 0},
};

static struct sampling *add_case(struct samplings *all, enum shape shape, unsigned format, unsigned channels)
{
    if (all->n == all->room) {
        all->room = all->room ? 2 * all->room : 256;
        all->items = realloc(all->items, all->room * sizeof *all->items);
        if (!all->items)
            exit(1);
    }
    struct sampling *s = &all->items[all->n++];
    *s = (struct sampling){.shape = shape,
                           .width = shapes[shape].width,
                           .height = shapes[shape].height,
                           .depth = shapes[shape].depth,
                           .levels = 1,
                           .array_flags = shapes[shape].flags,
                           .format = sampling_formats[format].format,
                           .channels = channels,
                           .rows = SAMPLING_ROWS};
    memcpy(s->words, shapes[shape].words, 4);
    return s;
}

// The name contains all that a case depends on, except what `more` stands for.
static void name_case(struct sampling *s, const char *more)
{
    unsigned f = 0;
    const CUDA_TEXTURE_DESC *t = &s->texture;
    while (sampling_formats[f].format != s->format)
        f++;
    snprintf(s->name, sizeof s->name, "%s %ux%ux%u %sx%u %s %s%s%s%s %s", shapes[s->shape].name, s->width,
             s->height, s->depth, sampling_formats[f].name, s->channels, t->filterMode ? "linear" : "point",
             mode_names[t->addressMode[0]], t->flags & CU_TRSF_NORMALIZED_COORDINATES ? " normalized" : "",
             t->flags & CU_TRSF_READ_AS_INTEGER ? " integer" : "", t->flags & CU_TRSF_SRGB ? " srgb" : "",
             more);
}

static void look(struct sampling *s, CUfilter_mode filter, CUaddress_mode mode, unsigned flags)
{
    s->texture.filterMode = filter;
    for (unsigned k = 0; k < 3; k++)
        s->texture.addressMode[k] = mode;
    s->texture.flags = flags;
    if (mode == CU_TR_ADDRESS_MODE_BORDER)
        for (unsigned k = 0; k < 4; k++)
            s->texture.borderColor[k] = 0.25f * (float)(k + 1);
}

static const char *result_type(const struct sampling *s, unsigned format)
{
    return !(s->texture.flags & CU_TRSF_READ_AS_INTEGER) ? "f32"
           : sampling_formats[format].is_signed          ? "s32"
                                                         : "u32";
}

// A plain tex.
static void plain(struct samplings *all, enum shape shape, unsigned format, unsigned channels,
                  CUfilter_mode filter, CUaddress_mode mode, unsigned flags, bool integers)
{
    struct sampling *s = add_case(all, shape, format, channels);
    look(s, filter, mode, flags);
    snprintf(s->code, sizeof s->code, "tex.%s.v4.%s.%s {%%x8, %%x9, %%x10, %%x11}, [%%rd1, %s];",
             shapes[shape].geometry, result_type(s, format), integers ? "s32" : "f32",
             integers ? shapes[shape].integers : shapes[shape].floats);
    if (integers)
        memcpy(s->words, shapes[shape].iwords, 4);
    name_case(s, integers ? "tex s32" : "tex");
}

// All ways to access a resource of that format.
static void ways(struct samplings *all, enum shape shape, unsigned format, unsigned channels)
{
    for (unsigned k = 0; k < 2 * 2 * 4 * 2; k++) {
        unsigned filter = k & 1, normal = k >> 1 & 1, mode = k >> 2 & 3, as_integer = k >> 4 & 1;
        bool cube = shape == SHAPE_CUBE || shape == SHAPE_ACUBE;
        if (as_integer ? sampling_formats[format].is_float || filter
                       : !sampling_formats[format].is_float && !sampling_formats[format].narrow)
            continue;
        if (!normal && (mode == CU_TR_ADDRESS_MODE_WRAP || mode == CU_TR_ADDRESS_MODE_MIRROR || cube))
            continue;
        unsigned flags =
            (normal ? CU_TRSF_NORMALIZED_COORDINATES : 0) | (as_integer ? CU_TRSF_READ_AS_INTEGER : 0);
        if (shape != SHAPE_LINEAR)
            plain(all, shape, format, channels, (CUfilter_mode)filter, (CUaddress_mode)mode, flags, false);
        if (!filter && !normal && !cube)
            plain(all, shape, format, channels, (CUfilter_mode)filter, (CUaddress_mode)mode, flags, true);
    }
}

static void all_ways(struct samplings *all)
{
    for (unsigned f = 0; f < SAMPLING_FORMATS; f++)
        for (unsigned channels = 1; channels <= 4; channels *= 2)
            ways(all, SHAPE_2D, f, channels);
    for (unsigned shape = SHAPE_1D; shape <= SHAPE_PITCH; shape++) {
        if (shape == SHAPE_2D)
            continue;
        ways(all, (enum shape)shape, 0, 1);
        ways(all, (enum shape)shape, 1, 2);
        ways(all, (enum shape)shape, 2, 4);
        ways(all, (enum shape)shape, 7, 1);
    }
}

// Weights of a filter, and where one texel ends, for many sizes.
static void widths(struct samplings *all)
{
    static const unsigned sizes[] = {1,     2,     3,     4,     5,     7,     16,     100,
                                     257,   1000,  1023,  4095,  4096,  4097,  6000,   8191,
                                     8192,  8193,  12000, 16383, 16384, 16385, 20000,  32767,
                                     32768, 32769, 40000, 65535, 65536, 65537, 100000, 131072};
    for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        for (unsigned n = 0; n < 3 * 2; n++) {
            struct sampling *s = add_case(all, SHAPE_1D, 0, 1);
            unsigned mode = n / 2 == 2 ? CU_TR_ADDRESS_MODE_CLAMP : n / 2;
            look(s, (CUfilter_mode)(n & 1), (CUaddress_mode)mode,
                 n / 2 == 2 ? 0 : CU_TRSF_NORMALIZED_COORDINATES);
            s->width = sizes[k];
            s->fill = n & 1 ? FILL_STEPS : FILL_INDEX;
            strcpy(s->code, "tex.1d.v4.f32.f32 {%x8, %x9, %x10, %x11}, [%rd1, {%x0}];");
            name_case(s, n & 1 ? "weights" : "index");
        }
    }
    for (unsigned k = 0; k < 4; k++) {
        struct sampling *s = add_case(all, (enum shape)(k > 2 ? SHAPE_2D : k), 0, k == 3 ? 4 : 1);
        look(s, CU_TR_FILTER_MODE_LINEAR, CU_TR_ADDRESS_MODE_CLAMP, 0);
        s->fill = FILL_WIDE;
        snprintf(s->code, sizeof s->code, "tex.%s.v4.f32.f32 {%%x8, %%x9, %%x10, %%x11}, [%%rd1, %s];",
                 shapes[s->shape].geometry, shapes[s->shape].floats);
        name_case(s, "wide");
    }
}

static void code_case(struct samplings *all, enum shape shape, unsigned format, unsigned channels,
                      CUfilter_mode filter, CUaddress_mode mode, unsigned flags, const char *code,
                      const uint8_t words[SAMPLING_IN], const char *more)
{
    struct sampling *s = add_case(all, shape, format, channels);
    look(s, filter, mode, flags);
    snprintf(s->code, sizeof s->code, "%s", code);
    memcpy(s->words, words, SAMPLING_IN);
    name_case(s, more);
}

static void gathers(struct samplings *all)
{
    static const struct {
        unsigned format, channels, flags;
    } looks[] = {
        {0, 4, 0}, {0, 1, 0}, {2, 4, 0}, {2, 4, CU_TRSF_READ_AS_INTEGER}, {7, 2, CU_TRSF_READ_AS_INTEGER}};
    for (unsigned k = 0; k < sizeof looks / sizeof *looks; k++)
        for (unsigned c = 0; c < 4; c++)
            for (unsigned normal = 0; normal < 2; normal++)
                for (unsigned mode = 0; mode < 4; mode++) {
                    if (!normal && !(mode & 1))
                        continue;
                    struct sampling *s = add_case(all, SHAPE_2D, looks[k].format, looks[k].channels);
                    look(s, CU_TR_FILTER_MODE_POINT, (CUaddress_mode)mode,
                         looks[k].flags | (normal ? CU_TRSF_NORMALIZED_COORDINATES : 0));
                    s->array_flags |= CUDA_ARRAY3D_TEXTURE_GATHER;
                    snprintf(s->code, sizeof s->code,
                             "tld4.%c.2d.v4.%s.f32 {%%x8, %%x9, %%x10, %%x11}, [%%rd1, {%%x0, %%x1}];",
                             "rgba"[c], result_type(s, looks[k].format));
                    char more[16];
                    snprintf(more, sizeof more, "tld4.%c", "rgba"[c]);
                    name_case(s, more);
                }
    for (unsigned k = 0; k < 4; k++) {
        static const uint8_t xy[SAMPLING_IN] = {WORD_X, WORD_Y};
        code_case(all, SHAPE_2D, 0, 4, (CUfilter_mode)(k & 1), CU_TR_ADDRESS_MODE_CLAMP,
                  k & 2 ? CU_TRSF_NORMALIZED_COORDINATES : 0,
                  "tex.2d.v4.f32.f32 {%x8, %x9, %x10, %x11}, [%rd1, {%x0, %x1}], {3, -2};", xy, "tex offset");
    }
}

static void levels(struct samplings *all)
{
    static const uint8_t plain_words[SAMPLING_IN] = {WORD_X, WORD_Y},
                         level_words[SAMPLING_IN] = {WORD_X, WORD_Y, WORD_LEVEL},
                         grad_words[SAMPLING_IN] = {WORD_X,        WORD_Y,        WORD_GRADIENT,
                                                    WORD_GRADIENT, WORD_GRADIENT, WORD_GRADIENT};
    static const char *const codes[] = {
        "tex.2d.v4.f32.f32 {%x8, %x9, %x10, %x11}, [%rd1, {%x0, %x1}];",
        "tex.level.2d.v4.f32.f32 {%x8, %x9, %x10, %x11}, [%rd1, {%x0, %x1}], %x2;",
        "tex.grad.2d.v4.f32.f32 {%x8, %x9, %x10, %x11}, [%rd1, {%x0, %x1}], {%x2, %x3}, {%x4, %x5};",
        "tex.base.2d.v4.f32.f32 {%x8, %x9, %x10, %x11}, [%rd1, {%x0, %x1}];",
    };
    static const char *const names[] = {"tex", "tex.level", "tex.grad", "tex.base"};
    for (unsigned k = 0; k < 4 * 2 * 2 * 4; k++) {
        unsigned code = k & 3, filter = k >> 2 & 1, mip = k >> 3 & 1, variant = k >> 4;
        // How levels behave with anisotropy is unknown.
        if (variant == 2 && (code == 2 || (code == 1 && mip)))
            continue;
        struct sampling *s = add_case(all, SHAPE_2D, 0, 1);
        look(s, (CUfilter_mode)filter, CU_TR_ADDRESS_MODE_CLAMP, CU_TRSF_NORMALIZED_COORDINATES);
        s->width = 40;
        s->height = 24;
        s->levels = variant == 2 ? 3 : 6;
        s->texture.mipmapFilterMode = (CUfilter_mode)mip;
        s->texture.maxMipmapLevelClamp = variant == 3 ? 2.3f : 100;
        s->texture.minMipmapLevelClamp = variant == 3 ? 0.6f : 0;
        s->texture.mipmapLevelBias = variant == 1 ? 0.37f : 0;
        s->texture.maxAnisotropy = variant == 2 ? 8 : 0;
        s->texture.flags |= variant == 1 ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION : 0;
        strcpy(s->code, codes[code]);
        memcpy(s->words, code == 1 ? level_words : code == 2 ? grad_words : plain_words, SAMPLING_IN);
        char more[64];
        snprintf(more, sizeof more, "%s mip %s variant %u", names[code], mip ? "linear" : "point", variant);
        name_case(s, more);
    }
}

// Levels of one value each: the result is the level, or the weight between two.
static void level_weights(struct samplings *all)
{
    static const struct {
        enum shape shape;
        const char *code, *name;
        uint8_t words[SAMPLING_IN];
    } rows[] = {
        {SHAPE_1D,
         "tex.level.1d.v4.f32.f32 {%x8, %x9, %x10, %x11}, [%rd1, {%x0}], %x1;",
         "1d level",
         {WORD_X, WORD_LEVEL}},
        {SHAPE_1D,
         "tex.grad.1d.v4.f32.f32 {%x8, %x9, %x10, %x11}, [%rd1, {%x0}], {%x1}, {%x2};",
         "1d grad",
         {WORD_X, WORD_GRADIENT, WORD_GRADIENT}},
        {SHAPE_2D,
         "tex.grad.2d.v4.f32.f32 {%x8, %x9, %x10, %x11}, [%rd1, {%x0, %x1}], {%x2, %x3}, {%x4, %x5};",
         "2d grad",
         {WORD_X, WORD_Y, WORD_GRADIENT, WORD_GRADIENT, WORD_GRADIENT, WORD_GRADIENT}},
        {SHAPE_2D,
         "tex.grad.2d.v4.f32.f32 {%x8, %x9, %x10, %x11}, [%rd1, {%x0, %x1}], {%x2, %x6}, {%x6, %x6};",
         "2d grad one",
         {WORD_X, WORD_Y, WORD_GRADIENT}},
        {SHAPE_3D,
         "tex.level.3d.v4.f32.f32 {%x8, %x9, %x10, %x11}, [%rd1, {%x0, %x1, %x2, %x2}], %x3;",
         "3d level",
         {WORD_X, WORD_Y, WORD_Z, WORD_LEVEL}},
        {SHAPE_A2D,
         "tex.level.a2d.v4.f32.f32 {%x8, %x9, %x10, %x11}, [%rd1, {%x0, %x1, %x2, %x2}], %x3;",
         "a2d level",
         {WORD_LAYER, WORD_X, WORD_Y, WORD_LEVEL}},
        {SHAPE_CUBE,
         "tex.level.cube.v4.f32.f32 {%x8, %x9, %x10, %x11}, [%rd1, {%x0, %x1, %x2, %x2}], %x3;",
         "cube level",
         {WORD_DIRECTION, WORD_DIRECTION, WORD_DIRECTION, WORD_LEVEL}},
    };
    for (unsigned k = 0; k < sizeof rows / sizeof *rows; k++)
        for (unsigned mip = 0; mip < 2; mip++) {
            struct sampling *s = add_case(all, rows[k].shape, 0, 1);
            look(s, CU_TR_FILTER_MODE_LINEAR, CU_TR_ADDRESS_MODE_CLAMP, CU_TRSF_NORMALIZED_COORDINATES);
            s->width = 64;
            s->height = s->height ? rows[k].shape == SHAPE_CUBE ? 64 : 32 : 0;
            s->depth = rows[k].shape == SHAPE_3D ? 16 : s->depth;
            s->levels = 6;
            s->texture.mipmapFilterMode = (CUfilter_mode)mip;
            s->texture.maxMipmapLevelClamp = 100;
            strcpy(s->code, rows[k].code);
            memcpy(s->words, rows[k].words, SAMPLING_IN);
            char more[64];
            snprintf(more, sizeof more, "%s mip %s levels", rows[k].name, mip ? "linear" : "point");
            name_case(s, more);
            s->fill = FILL_LEVEL;
        }
}

static void colours(struct samplings *all)
{
    static const uint8_t xy[SAMPLING_IN] = {WORD_X, WORD_Y};
    for (unsigned k = 0; k < 2 * 3; k++)
        code_case(all, SHAPE_2D, 2, 1u << k / 2, (CUfilter_mode)(k & 1), CU_TR_ADDRESS_MODE_BORDER,
                  CU_TRSF_SRGB, "tex.2d.v4.f32.f32 {%x8, %x9, %x10, %x11}, [%rd1, {%x0, %x1}];", xy, "tex");
    // Every byte.
    for (unsigned k = 0; k < 4; k++) {
        static const uint8_t x[SAMPLING_IN] = {WORD_ROW};
        struct sampling *s;
        code_case(all, SHAPE_1D, k & 1 ? 3 : 2, 1, CU_TR_FILTER_MODE_POINT, CU_TR_ADDRESS_MODE_CLAMP,
                  k & 2 ? CU_TRSF_SRGB : 0,
                  "cvt.rn.f32.s32 %x0, %x0; tex.1d.v4.f32.f32 {%x8, %x9, %x10, %x11}, [%rd1, {%x0}];", x,
                  "bytes");
        s = &all->items[all->n - 1];
        s->rows = 256;
        s->width = 256;
        s->fill = FILL_INDEX;
        name_case(s, "bytes");
    }
}

static void views(struct samplings *all)
{
    static const struct {
        unsigned format, channels;
        CUresourceViewFormat as;
        unsigned flags;
    } rows[] = {{6, 1, CU_RES_VIEW_FORMAT_UINT_4X8, 0},
                {6, 1, CU_RES_VIEW_FORMAT_FLOAT_1X32, 0},
                {6, 2, CU_RES_VIEW_FORMAT_FLOAT_4X16, 0},
                {2, 4, CU_RES_VIEW_FORMAT_UINT_1X32, CU_TRSF_READ_AS_INTEGER},
                {0, 1, CU_RES_VIEW_FORMAT_FLOAT_1X32, 0},
                {0, 1, CU_RES_VIEW_FORMAT_SINT_2X16, CU_TRSF_READ_AS_INTEGER}};
    for (unsigned n = 0; n < 5 * sizeof rows / sizeof *rows; n++) {
        unsigned k = n / 5, variant = n % 5;
        struct sampling *s =
            add_case(all, variant == 4 ? SHAPE_2D : SHAPE_A2D, rows[k].format, rows[k].channels);
        look(s, CU_TR_FILTER_MODE_POINT, CU_TR_ADDRESS_MODE_CLAMP, rows[k].flags);
        s->has_view = true;
        s->view = (CUDA_RESOURCE_VIEW_DESC){.format = rows[k].as,
                                            .width = s->width,
                                            .height = s->height,
                                            .depth = variant == 1   ? 3
                                                     : variant == 2 ? 0
                                                                    : s->depth,
                                            .firstLayer = variant == 3 ? 0 : 1,
                                            .lastLayer = variant == 3 ? 4 : 3};
        snprintf(s->code, sizeof s->code,
                 "tex.a2d.v4.%s.f32 {%%x8, %%x9, %%x10, %%x11}, [%%rd1, {%%x0, %%x1, %%x2, %%x2}];",
                 rows[k].flags ? "u32" : "f32");
        if (variant == 4) {
            s->view.firstLayer = s->view.lastLayer = 0;
            s->view.depth = 0;
            snprintf(s->code, sizeof s->code,
                     "tex.2d.v4.%s.f32 {%%x8, %%x9, %%x10, %%x11}, [%%rd1, {%%x0, %%x1}];",
                     rows[k].flags ? "u32" : "f32");
            memcpy(s->words, shapes[SHAPE_2D].words, 4);
        }
        char more[32];
        snprintf(more, sizeof more, "view %d variant %u", (int)rows[k].as, variant);
        name_case(s, more);
    }
}

static void queries(struct samplings *all)
{
    static const char *const of_texture[] = {"width",       "height",       "depth",
                                             "level.width", "level.height", "level.depth"};
    static const char *const of_surface[] = {"width", "height", "depth"};
    static const uint8_t none[SAMPLING_IN] = {WORD_IX};
    for (unsigned q = 0; q < sizeof of_texture / sizeof *of_texture; q++)
        for (unsigned k = 0; k <= SHAPE_PITCH + SAMPLING_FORMATS; k++) {
            unsigned shape = k <= SHAPE_PITCH ? k : SHAPE_2D,
                     format = k <= SHAPE_PITCH ? 0 : k - SHAPE_PITCH - 1;
            char code[256], more[64];
            snprintf(code, sizeof code, "txq.%s.b32 %%x8, [%%rd1]%s;", of_texture[q], q >= 3 ? ", %x1" : "");
            snprintf(more, sizeof more, "txq.%s", of_texture[q]);
            bool integer = !sampling_formats[format].is_float && !sampling_formats[format].narrow;
            code_case(all, (enum shape)shape, format, 1u << k % 3, (CUfilter_mode)0, CU_TR_ADDRESS_MODE_CLAMP,
                      integer ? CU_TRSF_READ_AS_INTEGER : 0, code, none, more);
            all->items[all->n - 1].rows = 32;
        }
    for (unsigned q = 0; q < sizeof of_surface / sizeof *of_surface; q++)
        for (unsigned k = 0; k <= SHAPE_ACUBE + SAMPLING_FORMATS; k++) {
            unsigned shape = k <= SHAPE_ACUBE ? k : SHAPE_2D,
                     format = k <= SHAPE_ACUBE ? 0 : k - SHAPE_ACUBE - 1;
            if (k > SHAPE_ACUBE && !format)
                continue;
            char code[256], more[64];
            snprintf(code, sizeof code, "suq.%s.b32 %%x8, [%%rd1];", of_surface[q]);
            snprintf(more, sizeof more, "suq.%s", of_surface[q]);
            code_case(all, (enum shape)shape, format, 1u << k % 3, (CUfilter_mode)0, CU_TR_ADDRESS_MODE_CLAMP,
                      0, code, none, more);
            struct sampling *s = &all->items[all->n - 1];
            s->rows = 32;
            s->surface = true;
            s->array_flags |= CUDA_ARRAY3D_SURFACE_LDST;
        }
}

static void surfaces(struct samplings *all)
{
    static const struct {
        const char *name, *coordinates;
        enum shape shape;
        uint8_t words[4];
    } places[] = {
        {"1d", "{%x0}", SHAPE_1D, {WORD_BX}},
        {"2d", "{%x0, %x1}", SHAPE_2D, {WORD_BX, WORD_IY}},
        {"3d", "{%x0, %x1, %x2, %x2}", SHAPE_3D, {WORD_BX, WORD_IY, WORD_IZ}},
        {"a1d", "{%x0, %x1}", SHAPE_A1D, {WORD_LAYER, WORD_BX}},
        {"a2d", "{%x0, %x1, %x2, %x2}", SHAPE_A2D, {WORD_LAYER, WORD_BX, WORD_IY}},
        {"a2d", "{%x0, %x1, %x2, %x2}", SHAPE_CUBE, {WORD_FACE, WORD_BX, WORD_IY}},
        {"a2d", "{%x0, %x1, %x2, %x2}", SHAPE_ACUBE, {WORD_FACE, WORD_BX, WORD_IY}},
    };
    static const struct {
        const char *type, *to, *wide;
        unsigned format, channels;
    } kinds[] = {
        {"b8", "%h0", "cvt.u32.u16 %x8, %h0;", 2, 1},
        {"b16", "%h0", "cvt.u32.u16 %x8, %h0;", 4, 1},
        {"b32", "%x8", "", 6, 1},
        {"b64", "%rd4", "mov.b64 {%x8, %x9}, %rd4;", 6, 2},
        {"v2.b8", "{%h0, %h1}", "mov.b32 %x8, {%h0, %h1};", 2, 2},
        {"v2.b16", "{%h0, %h1}", "mov.b32 %x8, {%h0, %h1};", 1, 2},
        {"v2.b32", "{%x8, %x9}", "", 0, 2},
        {"v2.b64", "{%rd4, %rd5}", "mov.b64 {%x8, %x9}, %rd4; mov.b64 {%x10, %x11}, %rd5;", 6, 4},
        {"v4.b8", "{%h0, %h1, %h2, %h3}", "mov.b32 %x8, {%h0, %h1}; mov.b32 %x9, {%h2, %h3};", 2, 4},
        {"v4.b16", "{%h0, %h1, %h2, %h3}", "mov.b32 %x8, {%h0, %h1}; mov.b32 %x9, {%h2, %h3};", 1, 4},
        {"v4.b32", "{%x8, %x9, %x10, %x11}", "", 0, 4}};
    static const char *const clamps[] = {"clamp", "zero"};
    for (unsigned p = 0; p < sizeof places / sizeof *places; p++)
        for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++)
            for (unsigned c = 0; c < 2; c++)
                for (unsigned stores = 0; stores < 2; stores++) {
                    struct sampling *s = add_case(all, places[p].shape, kinds[k].format, kinds[k].channels);
                    char more[64];
                    s->surface = true;
                    s->shows = stores;
                    s->rows = stores ? 12 : 256;
                    s->array_flags |= CUDA_ARRAY3D_SURFACE_LDST;
                    memcpy(s->words, places[p].words, 4);
                    if (stores)
                        snprintf(s->code, sizeof s->code,
                                 "mov.b32 {%%h0, %%h1}, %%x4; mov.b32 {%%h2, %%h3}, %%x5; mov.b64 %%rd4, "
                                 "{%%x4, %%x5}; mov.b64 %%rd5, {%%x6, %%x7};"
                                 " mov.b64 {%%x8, %%x9}, %%rd4; mov.b64 {%%x10, %%x11}, %%rd5; "
                                 "sust.b.%s.%s.%s [%%rd1, %s], %s;",
                                 places[p].name, kinds[k].type, clamps[c], places[p].coordinates,
                                 kinds[k].to);
                    else
                        snprintf(s->code, sizeof s->code, "suld.b.%s.%s.%s %s, [%%rd1, %s]; %s",
                                 places[p].name, kinds[k].type, clamps[c], kinds[k].to, places[p].coordinates,
                                 kinds[k].wide);
                    for (unsigned w = 4; stores && w < 8; w++)
                        s->words[w] = WORD_BITS;
                    snprintf(more, sizeof more, "%s %s %s", stores ? "sust.b" : "suld.b", kinds[k].type,
                             clamps[c]);
                    name_case(s, more);
                }
    // Formatted stores.
    for (unsigned f = 0; f < SAMPLING_FORMATS; f++)
        for (unsigned channels = 1; channels <= 4; channels *= 2) {
            static const uint8_t words[SAMPLING_IN] = {WORD_IX,   WORD_IY,   0,         0,
                                                       WORD_BITS, WORD_BITS, WORD_BITS, WORD_BITS};
            struct sampling *s;
            code_case(all, SHAPE_2D, f, channels, (CUfilter_mode)0, CU_TR_ADDRESS_MODE_CLAMP, 0,
                      "sust.p.2d.v4.b32.zero [%rd1, {%x0, %x1}], {%x4, %x5, %x6, %x7};", words, "sust.p");
            s = &all->items[all->n - 1];
            s->surface = s->shows = true;
            s->rows = 12;
            s->array_flags |= CUDA_ARRAY3D_SURFACE_LDST;
        }
}

static void borders(struct samplings *all)
{
    static const float colours[2][4] = {{-0.3f, 1.7f, 0.123f, NAN}, {0.1f, 300, -5, 1e-3f}};
    for (unsigned f = 0; f < SAMPLING_FORMATS; f++)
        for (unsigned k = 0; k < 4; k++) {
            bool integer = !sampling_formats[f].is_float && (k & 1 || !sampling_formats[f].narrow);
            if (k & 1 && !integer)
                continue;
            struct sampling *s = add_case(all, SHAPE_2D, f, 4);
            look(s, CU_TR_FILTER_MODE_POINT, CU_TR_ADDRESS_MODE_BORDER,
                 integer ? CU_TRSF_READ_AS_INTEGER : 0);
            memcpy(s->texture.borderColor, colours[k >> 1], sizeof colours[0]);
            snprintf(s->code, sizeof s->code,
                     "tex.2d.v4.%s.f32 {%%x8, %%x9, %%x10, %%x11}, [%%rd1, {%%x0, %%x1}];",
                     result_type(s, f));
            s->rows = 128;
            name_case(s, k >> 1 ? "border two" : "border one");
            // How small fractions of 65535 are rounded is unknown.
            if ((k & 1 && !sampling_formats[f].narrow) ||
                (k == 2 && sampling_formats[f].format == CU_AD_FORMAT_UNSIGNED_INT16))
                all->n--;
        }
}

// Derivatives that lie along one axis, across one another, or both aslant.
static void gradients(struct samplings *all)
{
    static const struct {
        const char *name, *dx, *dy;
    } rows[] = {{"along", "{%x2, %x6}", "{%x3, %x6}"},  {"across", "{%x2, %x6}", "{%x6, %x3}"},
                {"aslant", "{%x2, %x3}", "{%x6, %x6}"}, {"down", "{%x6, %x2}", "{%x6, %x6}"},
                {"same", "{%x2, %x3}", "{%x2, %x3}"},   {"both", "{%x2, %x3}", "{%x4, %x5}"}};
    for (unsigned k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sampling *s = add_case(all, SHAPE_2D, 0, 1);
        look(s, CU_TR_FILTER_MODE_LINEAR, CU_TR_ADDRESS_MODE_CLAMP, CU_TRSF_NORMALIZED_COORDINATES);
        s->width = s->height = 64;
        s->levels = 7;
        s->fill = FILL_LEVEL;
        s->texture.mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR;
        s->texture.maxMipmapLevelClamp = 100;
        snprintf(s->code, sizeof s->code,
                 "tex.grad.2d.v4.f32.f32 {%%x8, %%x9, %%x10, %%x11}, [%%rd1, {%%x0, %%x1}], %s, %s;",
                 rows[k].dx, rows[k].dy);
        static const uint8_t words[SAMPLING_IN] = {WORD_X,        WORD_Y,        WORD_GRADIENT,
                                                   WORD_GRADIENT, WORD_GRADIENT, WORD_GRADIENT};
        memcpy(s->words, words, SAMPLING_IN);
        char more[32];
        snprintf(more, sizeof more, "gradients %s", rows[k].name);
        name_case(s, more);
    }
}

// Results that are f16, of texels of all kinds of floats.
static void halves(struct samplings *all)
{
    static const unsigned formats[] = {0, 1, 2, 5};
    static const char *const results[] = {
        "tex.%s.v4.f16.f32 {%%h0, %%h1, %%h2, %%h3}, [%%rd1, %s]; cvt.u32.u16 %%x8, %%h0; cvt.u32.u16 %%x9, "
        "%%h1;"
        " cvt.u32.u16 %%x10, %%h2; cvt.u32.u16 %%x11, %%h3;",
        "tex.%s.v2.f16x2.f32 {%%x8, %%x9}, [%%rd1, %s]; mov.b32 %%x10, 0; mov.b32 %%x11, 0;"};
    for (unsigned k = 0; k < 4 * 2 * 2 * 3 * 2; k++) {
        unsigned format = formats[k % 4], linear = k / 4 % 2, result = k / 8 % 2, shape = k / 16 % 3;
        struct sampling *s = add_case(all, (enum shape)shape, format, k / 48 ? 4 : 1);
        look(s, linear ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT, CU_TR_ADDRESS_MODE_CLAMP, 0);
        s->fill = format ? FILL_RANDOM : FILL_WIDE;
        snprintf(s->code, sizeof s->code, results[result], shapes[shape].geometry, shapes[shape].floats);
        name_case(s, result ? "f16x2" : "f16");
    }
}

// Several threads at one texel: the final value does not depend on their order.
static void reductions(struct samplings *all)
{
    static const char *const kinds[] = {"b.add.2d.u32", "b.add.2d.s32", "b.min.2d.u32", "b.max.2d.s32",
                                        "b.and.2d.b32", "b.or.2d.b32",  "p.add.2d.b32", "p.min.2d.b32",
                                        "p.max.2d.b32", "p.and.2d.b32", "p.or.2d.b32"};
    static const char *const clamps[] = {"clamp", "zero"};
    for (unsigned k = 0; k < 2 * 2 * sizeof kinds / sizeof *kinds; k++) {
        const char *kind = kinds[k / 4];
        uint8_t words[SAMPLING_IN] = {*kind == 'b' ? WORD_BX : WORD_IX, WORD_IY, 0, 0, WORD_BITS};
        char code[256], more[64];
        snprintf(code, sizeof code, "sured.%s.%s [%%rd1, {%%x0, %%x1}], %%x4;", kind, clamps[k % 2]);
        snprintf(more, sizeof more, "sured.%s %s", kind, clamps[k % 2]);
        code_case(all, SHAPE_2D, k / 2 % 2 ? 7 : 6, 1, (CUfilter_mode)0, CU_TR_ADDRESS_MODE_CLAMP, 0, code,
                  words, more);
        struct sampling *s = &all->items[all->n - 1];
        s->surface = s->shows = true;
        s->rows = 256;
        s->array_flags |= CUDA_ARRAY3D_SURFACE_LDST;
    }
}

// How errors are reported.
static void faults(struct samplings *all)
{
    static const uint8_t xy[SAMPLING_IN] = {WORD_X, WORD_Y};
    static const struct {
        const char *name, *code;
    } rows[] = {
        {"no handle", "mov.b64 %rd1, 0; tex.2d.v4.f32.f32 {%x8, %x9, %x10, %x11}, [%rd1, {%x0, %x1}];"},
        {"wild handle",
         "mov.b64 %rd1, 0x123456789; tex.2d.v4.f32.f32 {%x8, %x9, %x10, %x11}, [%rd1, {%x0, %x1}];"},
    };
    for (unsigned k = 0; k < sizeof rows / sizeof *rows; k++) {
        code_case(all, SHAPE_2D, 0, 1, CU_TR_FILTER_MODE_POINT, CU_TR_ADDRESS_MODE_CLAMP, 0, rows[k].code, xy,
                  rows[k].name);
        struct sampling *s = &all->items[all->n - 1];
        s->array_flags |= CUDA_ARRAY3D_SURFACE_LDST;
        s->rows = 256;
    }
}

static void sampling_collect(struct samplings *all)
{
    all_ways(all);
    widths(all);
    gathers(all);
    levels(all);
    level_weights(all);
    colours(all);
    views(all);
    borders(all);
    gradients(all);
    queries(all);
    surfaces(all);
    halves(all);
    reductions(all);
    faults(all);
}

#endif
