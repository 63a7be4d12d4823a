// SPDX-License-Identifier: MIT
// A section by which `moat` recognises a program that is linked with our runtime instead of NVIDIA's.

__attribute__((section(".moat_runtime"), used)) static const char runtime_mark[] = "moat";
