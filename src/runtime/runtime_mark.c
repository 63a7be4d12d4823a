// SPDX-License-Identifier: MIT
// A section that tells a program linked with our runtime from one linked with NVIDIA's: `moat` looks for it.

__attribute__((section(".moat_runtime"), used)) static const char runtime_mark[] = "moat";
