#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Compares src/guard/nvtx_api.h with the headers of an installed NVTX, by the compiler: sizes,
# offsets and values.
# Exit status: 0 all alike, 1 some difference, 77 nothing to compare with.
set -u
cd "$(dirname "$0")/../.." || exit 1
nvcc=$(command -v nvcc || true)
include=
for dir in "${CUDA_HOME:-}" "${nvcc:+$(dirname "$(dirname "$(readlink -f "$nvcc")")")}" /usr/local/cuda; do
    if [ -n "$dir" ] && [ -f "$dir/include/nvtx3/nvToolsExtMem.h" ]; then
        include=$dir/include
        break
    fi
done
[ -n "$include" ] ||
    { echo 'skipped: no nvtx3/nvToolsExtMem.h found (CUDA_HOME, nvcc, /usr/local/cuda)'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT

same() {  # same OURS THEIRS OUR_FIELD:THEIR_FIELD...
    local ours=$1 theirs=$2 pair
    shift 2
    echo "_Static_assert(sizeof(struct $ours) == sizeof($theirs), \"size of $ours\");"
    for pair; do
        echo "_Static_assert(offsetof(struct $ours, ${pair%:*}) == offsetof($theirs, ${pair#*:})," \
            "\"$ours.${pair%:*}\");"
        echo "_Static_assert(sizeof(((struct $ours *)0)->${pair%:*}) == sizeof((($theirs *)0)->${pair#*:})," \
            "\"width of $ours.${pair%:*}\");"
    done
}

value() { echo "_Static_assert((int)$1 == (int)$2, \"$1\");"; }

{
    echo '#include <nvtx3/nvToolsExtMem.h>'
    echo '#include "guard/nvtx_api.h"'
    same nvtx_api_callbacks NvtxExportTableCallbacks size:struct_size functions:GetModuleFunctionTable
    same nvtx_api_segment nvtxExtModuleSegment_t id:segmentId count:slotCount slots:functionSlots
    same nvtx_api_module nvtxExtModuleInfo_t version:nvtxVer size:structSize id:moduleId compatible:compatId \
        nsegments:segmentsCount segments:segments get_function:getExportFunction info:extInfo
    same nvtx_api_range nvtxMemVirtualRangeDesc_t size:size pointer:ptr
    same nvtx_api_heap nvtxMemHeapDesc_t compatible:extCompatID size:structSize usage:usage type:type \
        range_size:typeSpecificDescSize range:typeSpecificDesc category:category \
        text_type:messageType text:message
    same nvtx_api_register nvtxMemRegionsRegisterBatch_t compatible:extCompatID size:structSize \
        type:regionType heap:heap \
        count:regionCount stride:regionDescElementSize ranges:regionDescElements \
        handles:regionHandleElementsOut
    same nvtx_api_resize nvtxMemRegionsResizeBatch_t compatible:extCompatID size:structSize type:regionType \
        count:regionDescCount stride:regionDescElementSize ranges:regionDescElements
    same nvtx_api_unregister nvtxMemRegionsUnregisterBatch_t compatible:extCompatID \
        size:structSize ref_type:refType \
        count:refCount stride:refElementSize refs:refElements
    same nvtx_api_name nvtxMemRegionNameDesc_t ref_type:regionRefType text_type:nameType \
        region:region text:name \
        category:category
    same nvtx_api_names nvtxMemRegionsNameBatch_t compatible:extCompatID size:structSize count:regionCount \
        stride:regionElementSize names:regionElements
    value NVTX_API_TABLE_CALLBACKS NVTX_ETID_CALLBACKS
    value NVTX_API_MODULE_CORE2 NVTX_CB_MODULE_CORE2
    value NVTX_API_REGISTER_STRING NVTX_CBID_CORE2_DomainRegisterStringA
    value NVTX_API_EXTENSION_MEM NVTX_EXT_MODULEID_MEM
    value NVTX_API_COMPATIBLE_MEM NVTX_EXT_COMPATID_MEM
    value NVTX_API_MEM_VIRTUAL_ADDRESS NVTX_MEM_TYPE_VIRTUAL_ADDRESS
    value NVTX_API_MEM_SUB_ALLOCATOR NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR
    value NVTX_API_MEM_REF_POINTER NVTX_MEM_REGION_REF_TYPE_POINTER
    value NVTX_API_MEM_REF_HANDLE NVTX_MEM_REGION_REF_TYPE_HANDLE
    value NVTX_API_TEXT_ASCII NVTX_MESSAGE_TYPE_ASCII
    value NVTX_API_TEXT_UNICODE NVTX_MESSAGE_TYPE_UNICODE
    value NVTX_API_TEXT_REGISTERED NVTX_MESSAGE_TYPE_REGISTERED
    value NVTX_API_HEAP_REGISTER NVTX3EXT_CBID_nvtxMemHeapRegister
    value NVTX_API_HEAP_UNREGISTER NVTX3EXT_CBID_nvtxMemHeapUnregister
    value NVTX_API_HEAP_RESET NVTX3EXT_CBID_nvtxMemHeapReset
    value NVTX_API_REGIONS_REGISTER NVTX3EXT_CBID_nvtxMemRegionsRegister
    value NVTX_API_REGIONS_RESIZE NVTX3EXT_CBID_nvtxMemRegionsResize
    value NVTX_API_REGIONS_UNREGISTER NVTX3EXT_CBID_nvtxMemRegionsUnregister
    value NVTX_API_REGIONS_NAME NVTX3EXT_CBID_nvtxMemRegionsName
} >"$T/compare.c"
"${CC:-cc}" -std=gnu11 -w -isystem "$include" -Isrc -fsyntax-only "$T/compare.c" || exit 1
echo "$(grep -c Static_assert "$T/compare.c") facts alike"
