# SPDX-License-Identifier: MIT
# `make help` lists the targets. Several configurations sit side by side:
#   make BUILD=build/mine CC=clang SAN=address,undefined MODULES="base ptx"

VERSION := 0.1.0

ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

ifeq ($(origin CC),default)
CC      := gcc
endif
BUILD   ?= build
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
MANDIR  ?= $(PREFIX)/share/man
SAN     ?=
OPT     ?= -O2
# Lines and functions, which stacks are made of; -g, for a debugger, takes the compiler a quarter longer.
DEBUG   ?= -g1
# Warnings stop the build in a checkout, so that `make` and `make check` share their objects; not in a release.
WERROR  ?= $(if $(wildcard .git),1,0)
V       ?= 0
# What links programs that nobody installs: lld takes half of the time that ld takes, and need not be there.
QUICK_LD := $(if $(shell command -v ld.lld),-fuse-ld=lld)
# What links everything; ld if empty.
LINKER  ?=
# After OPT, for the programs of test scripts, and for unit tests: they are compiled more often than they run, but for those
# in SLOW_UNITS.
TEST_OPT ?= -O1
UNIT_OPT ?= -O0
SLOW_UNITS := $(wildcard src/kheap/*_test.c) src/heap/heap_test.c src/flow/func_test.c src/flow/graph_test.c src/check/check_table_test.c
# After OPT, for the files in which unit tests spend their time: at least a sixth of what the optimizer takes over each.
HOT      := $(addprefix src/,base/arena.c base/map.c base/mem.c \
	exec/collective.c exec/control.c exec/grid.c exec/order.c exec/sched.c exec/slots.c exec/special.c exec/slots_test.c \
	flow/build.c flow/cfg.c flow/dom.c flow/graph.c flow/launch_text.c flow/live.c flow/loops.c flow/reach.c flow/regs.c \
	flow/scc.c flow/func_test.c flow/roots_test.c kheap/kalloc_test.c kheap/kfind_test.c kheap/kheap_native_test.c \
	kheap/ksched_test.c ptx/constant.c ptx/edit_item.c ptx/edit_text.c ptx/extent.c ptx/lexer.c ptx/op.c ptx/parse_body.c \
	ptx/parse_decl.c ptx/parse_name.c ptx/parse_operand.c ptx/parser.c ptx/ptx.c ptx/verify.c)
HOT_OPT  ?=
# 1: what base/checked.h asserts is looked at.
CHECKED ?= $(if $(SAN),1,0)

# A folder under src/ is a module. All but cli, which makes the command, go into one internal library.
MODULES ?= $(filter-out cli,$(patsubst src/%/,%,$(sort $(wildcard src/*/))))

# A shared library: its name in LIBS, its modules in NAME_MODULES, what else it links in NAME_LDLIBS, its SONAME
# in NAME_SONAME if that is not NAME, the version of its symbols, if they have one, in NAME_NODE. The symbols it
# exports stand in src/*/NAME.exports, or in a table that it names; script/list-exports reads it.
LIBS := libmoat.so libmoat-cpu.so libcudart.so.13 libmoat-heap.so
# Preloaded into every process: of the other modules only what they need.
libmoat.so_MODULES := guard
libmoat.so_SONAME := libcuda.so.1
# A program may have other versions of these libraries: what is needed of them is part of libmoat.so.
libmoat.so_LDLIBS = $(ARCHIVE) -Wl,-Bstatic -lzstd -llz4 -lxxhash -Wl,-Bdynamic
libmoat-cpu.so_MODULES := base ptx flow image driver exec cpu
libmoat-cpu.so_SONAME := libcuda.so.1
# Its threads never end: the code must stay.
libmoat-cpu.so_LDLIBS := -Wl,-z,nodelete
libcudart.so.13_MODULES := base driver runtime
libcudart.so.13_NODE := libcudart.so.13
# Stacks in reports are about the program: no source lines for its runtime.
libcudart.so.13_LDLIBS := -Wl,--strip-debug
# With a copy of the unwinder, which must not be loaded late.
libmoat-heap.so_MODULES := heap
libmoat-heap.so_LDLIBS = $(ARCHIVE) -static-libgcc -Wl,-z,nodelete

# src/exec/lanes_*.c are compiled once for each of these instruction sets; the processor's best is chosen at run time.
LANES     ?= plain avx2 avx512
# Lines are all that a debugger can show of loops so rearranged; variables would take a quarter of the compiler's time.
LANES_OPT ?= -O3 -g1
# Each function that executes instructions starts a cache line: its speed does not hang on the sizes of those before it.
EXEC_OPT  ?= -falign-functions=64
# Processors without AVX2 are old, and -O3 takes the compiler half as long again.
LANES_plain  := $(if $(filter -O3,$(LANES_OPT)),-O2)
LANES_avx2   := -mavx2 -mfma -mf16c -mbmi -mbmi2 -mpopcnt -mlzcnt
LANES_avx512 := $(LANES_avx2) -mavx512f -mavx512bw -mavx512vl -mavx512dq -mprefer-vector-width=512

OBJCOPY  ?= objcopy
PACKAGES := libzstd liblz4 libelf libdw libxxhash libcjson

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wno-unused-parameter
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
ALL_CPPFLAGS := -D_GNU_SOURCE $(if $(filter 1,$(CHECKED)),-DMOAT_CHECKED) -Isrc -Iinclude $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null) $(CPPFLAGS)
ALL_CFLAGS := -std=gnu11 $(OPT) $(DEBUG) -fvisibility=hidden -fPIC $(WARNINGS) $(if $(filter 1,$(WERROR)),-Werror) \
	$(SANFLAGS) $(CFLAGS)
ALL_LDFLAGS := $(LINKER) $(SANFLAGS) -pthread -Wl,--as-needed -Wl,-z,relro,-z,now -Wl,-rpath,'$$ORIGIN/../lib' $(LDFLAGS)
LDLIBS := $(shell pkg-config --libs $(PACKAGES) 2>/dev/null) -ldl -lm

sources = $(filter-out %_test.c,$(wildcard src/$(1)/*.c))
objects = $(foreach m,$(1),$(foreach s,$(call sources,$(m)),$(if $(filter lanes_%,$(notdir $(s))), \
	$(LANES:%=$(s:src/%.c=$(BUILD)/obj/%).%.o),$(s:src/%.c=$(call place,$(s))/obj/%.o))))

# The folder of a build without CHECKED, up to date, that lends a build with CHECKED all objects in which nothing asserts.
LENDER   ?=
ASSERTING := $(if $(LENDER),$(patsubst $(LENDER)/obj/%.d,src/%.c,$(shell grep -l 'src/base/checked\.h' $(LENDER)/obj/*/*.d)))
place = $(if $(and $(LENDER),$(filter-out $(ASSERTING),$(1))),$(LENDER),$(BUILD))

ARCHIVE  := $(BUILD)/libmoat-all.a
COMMAND  := $(BUILD)/bin/moat
SHARED   := $(LIBS:%=$(BUILD)/lib/%) $(BUILD)/lib/libcudart.so.12
STATIC   := $(BUILD)/lib/libcudart_static.a
TESTSRC  := $(foreach m,$(MODULES) cli,$(wildcard src/$(m)/*_test.c))
TESTS    := $(patsubst src/%/,$(BUILD)/test/%.linked,$(sort $(dir $(TESTSRC))))
TOOLSRC  := $(filter-out test/fuzz/% test/unit/%,$(wildcard test/*/*.c))
TOOLS    := $(patsubst %.c,$(BUILD)/tool/%,$(notdir $(TOOLSRC)))
# Tools of folders whose scripts all leave this build out; and those that clang reads in place of that build.
NO_TOOLS  = $(patsubst %.c,$(BUILD)/tool/%,$(notdir $(wildcard $(UNSCRIPTED:%=test/%/*.c))))
READ_ONLY = $(filter $(SCRIPTED:%=test/%/%),$(TOOLSRC))
FUZZERS  := $(patsubst test/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard test/fuzz/fuzz_*.c))
# Some need NVIDIA's CUPTI: bench/cupti_library compiles them where that is.
BENCHES  := $(patsubst bench/%.c,$(BUILD)/bench/%,$(filter-out bench/um_faults.c bench/kernel_times.c bench/shadow_trace.c,$(wildcard bench/*.c)))

VARIANT := $(MAKE) --no-print-directory
PLAIN   := $(VARIANT) BUILD=$(BUILD) WERROR=1
# Of clang's build `make check` makes only the library that asserts, to run programs under it (test/guard/checked.sh), with
# gcc's objects where nothing asserts: what else it would have, the build with sanitizers has too, with the same warnings and
# assertions, but for tools, which clang then only reads for its warnings. clang's optimizer takes most of the time where
# there are sanitizers: only what much is executed of is optimized; and UBSan takes half of the time for lanes, where
# check-all alone has it.
CLANG   := $(VARIANT) BUILD=$(BUILD)/clang CC=clang LINKER=$(QUICK_LD) LANES_OPT=-O2 CHECKED=1 WERROR=1
ASAN    := $(VARIANT) BUILD=$(BUILD)/asan CC=clang LINKER=$(QUICK_LD) LANES=plain \
	UNSCRIPTED="flow golden guard heap" SAN=address,undefined,fuzzer-no-link WERROR=1
TSAN    := $(VARIANT) BUILD=$(BUILD)/tsan CC=clang LINKER=$(QUICK_LD) LANES=plain LANES_OPT=-O1 SAN=thread WERROR=1
CLANG_MORE := LENDER=$(BUILD) OPT=-O0 MODULES="$(filter-out exec cpu runtime heap,$(MODULES))" SCRIPTED="flow golden guard heap" checked
ASAN_MORE  := OPT=-O0 HOT_OPT=-O1 LANES_OPT="-O0 -fno-sanitize=undefined" TEST_OPT=-O0

ifeq ($(V),0)
# No process of its own for each line, and none for a folder that is there.
run = $(info $()  $(1)	$@)@$(2)
else
run = $(2)
endif
folder = $(if $(wildcard $(@D)/.),,mkdir -p $(@D))

.PHONY: all checked demo check check-all check-python venv bench install uninstall format dist clean help packages tests fuzzers variants dependencies plain clang asan
.DELETE_ON_ERROR:

all: $(COMMAND) $(SHARED) $(STATIC) $(BUILD)/lib/moat/libcuda.so  ## build/bin/moat and build/lib/*.so

# The library that asserts, and warnings of READ_ONLY.
checked: $(BUILD)/lib/libmoat.so $(BUILD)/tools.read
$(BUILD)/tools.read: $(READ_ONLY) $(wildcard test/*/*.h test/*/*.def) $(ARCHIVE)
	$(call run,READ,$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -fsyntax-only $(READ_ONLY) && touch $@)

# What is built depends on the flags it was built with, and an archive, a command or a test program on
# the list of its parts.
FLAGS := $(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(VERSION) $(LANES) $(LANES_OPT) $(LANES_plain) $(EXEC_OPT) $(TEST_OPT) $(UNIT_OPT) $(HOT_OPT)
PARTS := $(call objects,$(MODULES) cli)
$(BUILD)/flags: STAMP := $(FLAGS)
$(BUILD)/parts: STAMP := $(PARTS)
$(BUILD)/units: STAMP := $(TESTSRC)
$(BUILD)/flags $(BUILD)/parts $(BUILD)/units: FORCE
	@$(folder)
	@printf '%s\n' '$(subst ','\'',$(STAMP))' | cmp -s - $@ || printf '%s\n' '$(subst ','\'',$(STAMP))' > $@
$(BUILD)/flags: | packages
packages:
	@script/install-deps --check build
FORCE:

$(BUILD)/obj/%.o: src/%.c $(BUILD)/flags
	@$(folder)
	$(call run,CC,$(CC) $(ALL_CPPFLAGS) $(GROUP) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<)

# Exact arithmetic: no contraction into fma, but nobody looks at errno or the exception flags.
define lanes
$(BUILD)/obj/%.$(1).o: src/%.c $(BUILD)/flags
	@$$(folder)
	$$(call run,CC,$$(CC) $$(ALL_CPPFLAGS) -DLANES_ISA=$(1) $$(ALL_CFLAGS) $$(LANES_OPT) $$(LANES_$(1)) \
		-ffp-contract=off -fno-math-errno -fno-trapping-math -fno-strict-aliasing -Wno-pass-failed -MMD -MP -c -o $$@ $$<)
endef
$(foreach l,$(LANES),$(eval $(call lanes,$(l))))
$(BUILD)/obj/exec/%.o: ALL_CFLAGS += $(EXEC_OPT)
$(SLOW_UNITS:src/%.c=$(BUILD)/obj/%.o): ALL_CFLAGS += $(TEST_OPT)
$(patsubst src/%.c,$(BUILD)/obj/%.o,src/heap/thread_cache.c $(HOT)): ALL_CFLAGS += $(HOT_OPT)
# What kernels do to memory they do as their program says, races and all: those are not ours to find.
$(BUILD)/obj/exec/lanes_mem.%.o: ALL_CFLAGS += -fno-sanitize=thread
# ThreadSanitizer asks our dlsym for the functions that it replaces, before it can watch anything.
$(BUILD)/obj/guard/dl_hook.o $(BUILD)/obj/guard/jit_hook.o: ALL_CFLAGS += -fno-sanitize=thread
$(BUILD)/obj/exec/lane.o $(BUILD)/obj/exec/access.o $(BUILD)/obj/exec/mma.o: ALL_CPPFLAGS += $(LANES:%=-DLANES_HAVE_%)

$(BUILD)/obj/cli/%.o $(BUILD)/obj/track/%.o $(BUILD)/obj/rewrite/%.o: ALL_CPPFLAGS += -DMOAT_VERSION='"$(VERSION)"'

# They have the names of libc's and libcuda's functions, whose place they would take in whatever is linked with the archive.
PRELOADED := $(patsubst src/%.c,%.o,$(wildcard src/heap/preload*.c) src/guard/forward.c src/guard/dl_hook.c \
	src/guard/abort_hook.c src/guard/elf_image_light.c $(wildcard src/guard/jit_*.c))

# Rebuilt from scratch: `ar` would keep the objects of files that are gone.
$(ARCHIVE): $(filter-out $(foreach b,$(BUILD) $(LENDER),$(PRELOADED:%=$(b)/obj/%)),$(call objects,$(MODULES))) $(BUILD)/parts
	$(call run,AR,rm -f $@ && $(AR) rcs $@ $(filter %.o,$^))

$(COMMAND): $(call objects,cli) $(ARCHIVE) $(BUILD)/parts
	@$(folder)
	$(call run,LD,$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LDLIBS))

# The table of a library's exports, those that it names in lines @MODULE/NAME.def, and the scripts that read them.
exports = $(foreach t,$(wildcard src/*/$(1).exports),$(t) $(addprefix src/,$(shell sed -n 's/^@//p' $(t)))) \
	script/list-exports script/export-map

define library
$(BUILD)/lib/$(1): LIBFLAGS := -shared -Wl,-soname,$(or $($(1)_SONAME),$(1)) -Wl,--version-script=$(BUILD)/lib/$(1).map
$(BUILD)/lib/$(1): $(call objects,$($(1)_MODULES)) $(call exports,$(1)) $(BUILD)/parts
	@$$(folder)
	@script/export-map $$(filter %.exports,$$^) $($(1)_NODE) > $$@.map
	$$(call run,LD,$$(CC) $$(ALL_CFLAGS) $$(ALL_LDFLAGS) $$(LIBFLAGS) $$(NO_UNDEFINED) -o $$@ $$(filter %.o,$$^) \
		$$($(1)_LDLIBS) $$(LDLIBS))
endef
# The sanitizers leave symbols to the program's copy of their runtime.
NO_UNDEFINED := -Wl,--no-undefined
ifneq ($(SAN),)
NO_UNDEFINED :=
endif
$(foreach l,$(LIBS),$(eval $(call library,$(l))))
$(BUILD)/lib/libmoat.so $(BUILD)/lib/libmoat-heap.so: $(ARCHIVE)

# The same runtime for CUDA 12 programs: what cudart12.c has takes the place of what 13 has under the same names.
$(BUILD)/lib/libcudart.so.12: LIBFLAGS := -shared -Wl,-soname,libcudart.so.12 -Wl,--version-script=$(BUILD)/lib/libcudart.so.12.map
$(BUILD)/lib/libcudart.so.12: $(call objects,base driver runtime) $(call exports,libcudart.so.13) script/runtime12 \
		$(BUILD)/parts
	@$(folder)
	$(call run,LD,$(LD) -r -o $@.o $(filter %.o,$^) && script/runtime12 $@.o $(filter %.exports,$^) > $@.exports && \
		script/export-map $@.exports $(@F) > $@.map && \
		$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(LIBFLAGS) $(NO_UNDEFINED) -o $@ $@.o $(libcudart.so.13_LDLIBS) $(LDLIBS) && rm $@.o $@.exports)

# One object in which all but the API is local: a program may have functions of any name.
$(STATIC): $(filter-out %/cudart12.o,$(call objects,driver runtime)) $(patsubst %,$(BUILD)/obj/base/%.o,mem mutex cancel) \
		$(BUILD)/parts
	@$(folder)
	$(call run,AR,$(LD) -r -o $@.o $(filter %.o,$^) && $(OBJCOPY) --localize-hidden --strip-debug $@.o && rm -f $@ && \
		$(AR) rcs $@ $@.o && rm $@.o)

# What programs ask for by name is found in lib/moat. Not in lib: there `moat` would take our libcuda for the machine's.
$(BUILD)/lib/moat/libcuda.so: script/name-libraries $(wildcard src/guard/*.py)
	@script/name-libraries $(@D) ..
	@touch -h $@

# What a fuzzer finds in our code is worth counting, not what runs in the tests.
ifneq ($(findstring fuzzer,$(SAN)),)
UNCOUNTED := -fno-sanitize=fuzzer-no-link
$(BUILD)/obj/%_test.o: ALL_CFLAGS += $(UNCOUNTED)
# No fuzzer calls these modules.
UNFUZZED  := canary check cli context core count explain fence heap hook kwatch launch mode pages prove rewrite runtime \
	shadow share tally track
$(UNFUZZED:%=$(BUILD)/obj/%/%.o): ALL_CFLAGS += $(UNCOUNTED)
endif

# The command is not in the archive: its tests are linked with all of it but main.
command = $(if $(filter cli,$(1)),$(filter-out %/main.o,$(call objects,cli)))
# One program has the tests of a module. BUILD/test/NAME_test, a name of it, runs those of NAME_test.c: test/unit/unit_main.c.
$(BUILD)/obj/%_test.o: ALL_CFLAGS += $(UNIT_OPT)
$(BUILD)/obj/%_test.o: GROUP = -include test/unit/unit_group.h -DTEST_GROUP=$(basename $(@F))
$(BUILD)/test/unit_main.o: test/unit/unit_main.c test/unit/unit_group.h $(BUILD)/flags
	@$(folder)
	$(call run,CC,$(CC) $(ALL_CPPFLAGS) -DUNIT_SANITIZED=$(if $(SAN),1,0) $(ALL_CFLAGS) $(UNCOUNTED) -c -o $@ $<)

define test_programs
$(BUILD)/test/$(1).linked: $(patsubst src/%.c,$(BUILD)/obj/%.o,$(filter src/$(1)/%,$(TESTSRC))) $(BUILD)/test/unit_main.o \
		$(call command,$(1)) $(ARCHIVE) $(BUILD)/units script/link-tests
	$$(call run,LD,script/link-tests $$(@D) $(1) $$(filter %_test.o,$$^) -- \
		$$(CC) $$(ALL_CFLAGS) $$(ALL_LDFLAGS) $(QUICK_LD) @ $$(filter %/unit_main.o,$$^) $(call command,$(1)) $(ARCHIVE) -lcmocka $$(LDLIBS))
$(patsubst src/$(1)/%.c,$(BUILD)/test/%,$(filter src/$(1)/%,$(TESTSRC))): $(BUILD)/test/$(1).linked ;
endef
$(foreach m,$(TESTS:$(BUILD)/test/%.linked=%),$(eval $(call test_programs,$(m))))

# Programs that the test scripts beside them use: test/NAME/*.c. Compiled and linked in two steps, since a compiler cache
# knows the first alone.
define tool
$(BUILD)/tool/$(basename $(notdir $(1))): $(1) $(wildcard $(dir $(1))*.h $(dir $(1))*.def) $(ARCHIVE)
	@$$(folder)
	$$(call run,LD,$$(CC) $$(ALL_CPPFLAGS) $$(ALL_CFLAGS) $(UNCOUNTED) $(TEST_OPT) -c -o $$@.o $$(filter %.c,$$^) && \
		$$(CC) $$(ALL_CFLAGS) $$(ALL_LDFLAGS) $(QUICK_LD) $(UNCOUNTED) -o $$@ $$@.o $$(filter %.a,$$^) $$(LDLIBS) && rm $$@.o)
endef
$(foreach t,$(TOOLSRC),$(eval $(call tool,$(t))))

$(BUILD)/fuzz/%: test/fuzz/%.c $(wildcard test/fuzz/*.h) $(ARCHIVE)
	@$(folder)
	$(call run,FUZZ,$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -Wno-missing-prototypes -fsanitize=fuzzer -c -o $@.o $(filter %.c,$^) && \
		$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer $(ALL_LDFLAGS) -o $@ $@.o $(filter %.a,$^) $(LDLIBS) && rm $@.o)

$(BUILD)/bench/%: bench/%.c bench/bench.h $(ARCHIVE)
	@$(folder)
	$(call run,LD,$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.c %.a,$^) $(LDLIBS))

# With some modules only, there are no tools: they need all.
tests: $(TESTS) $(if $(filter file,$(origin MODULES)),$(filter-out $(NO_TOOLS),$(TOOLS)))
fuzzers: $(FUZZERS)

demo:  ## install what is missing, build, show moat at work
	@script/install-deps build
	+@$(VARIANT) all
	@script/demo $(BUILD)

# Side by side: while one links its library, the others keep the processors busy.
variants: plain clang asan
plain clang asan: | dependencies
plain:
	+@$(PLAIN) all tests
clang: | plain
clang:
	+@$(CLANG) $(CLANG_MORE)
asan:
	+@$(ASAN) $(ASAN_MORE) all tests fuzzers
dependencies:
	@script/install-deps check

check: variants  ## install what is missing, build with gcc and clang, run the tests
	@test/run $(BUILD) $(BUILD)/asan

check-all: CLANG_MORE := UNIT_OPT=-O1 all tests
check-all: ASAN_MORE := OPT=-O1 LANES_OPT=-O1 UNIT_OPT=-O1
check-all: variants venv  ## also the long tests, a long fuzzing run, ThreadSanitizer
	+@$(TSAN) all tests
	@FUZZ_SECONDS=$${FUZZ_SECONDS:-600} test/run --all $(BUILD) $(BUILD)/clang $(BUILD)/asan $(BUILD)/tsan

# PyTorch's wheel for CUDA brings Triton. The tests in test/python are skipped where it cannot be had.
venv:
	@script/python-venv $(BUILD)

check-python: all venv  ## PyTorch and Triton on the CPU device, in a virtual environment below build/
	@TEST_TIMEOUT=$${TEST_TIMEOUT:-3600} test/run --only='*python/*' $(BUILD)

bench: all $(BENCHES) $(BUILD)/tool/kheap_load  ## measure speed and memory
	@set -e; for b in bench/*.sh; do [ ! -x "$$b" ] || MOAT=$(COMMAND) BUILD=$(BUILD) "$$b"; done

install: all  ## to $(DESTDIR)$(PREFIX)
	@script/install $(BUILD) "$(DESTDIR)$(PREFIX)" "$(DESTDIR)$(LIBDIR)" "$(DESTDIR)$(MANDIR)"

uninstall: all  ## remove what install has put there
	@script/uninstall $(BUILD) "$(DESTDIR)$(PREFIX)" "$(DESTDIR)$(LIBDIR)" "$(DESTDIR)$(MANDIR)"

dist: all $(if $(WITH_TESTS),$(TOOLS) $(BENCHES))  ## one folder, and its archive, that runs where nothing can be installed; WITH_TESTS=1
	@WITH_TESTS=$(WITH_TESTS) script/dist $(BUILD) $(VERSION)

wheel: all  ## build/wheel/moat-*.whl: `pip install` of it gives the command and `pytest --moat`
	@script/wheel $(BUILD) $(VERSION)

# The small environments of test/python: pytest and Numba.
.PHONY: wheel python-envs
check-python check-all: python-envs
python-envs:
	@script/python-envs $(BUILD)

format:  ## clang-format over the sources
	@script/format

clean:  ## remove the build folder
	rm -rf $(BUILD)

help:  ## this text
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/  \1\t\2/p' Makefile | expand -t 16
	@echo 'Variables: BUILD CC SAN OPT CHECKED WERROR MODULES CFLAGS LDFLAGS PREFIX LIBDIR MANDIR DESTDIR WITH_TESTS V=1'

-include $(wildcard $(BUILD)/obj/*/*.d)
