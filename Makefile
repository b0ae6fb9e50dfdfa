# uvmsim. `make demo` and `make test` need nothing but a Debian or Ubuntu system: they call `make deps` themselves.
#
#   make            the program and the library, in build/
#   make demo       replay the bundled recordings and compare with what the real driver did
#   make test       the quick suite (unit, conformance, CLI, sanitizers)
#   make soak       the long one: random traces, every fault, every fuzz target (SOAK_SECONDS=600, FUZZ_SECONDS=1200 each)
#   make deps | conformance | bench | asan | memcheck | fuzz | lint | format | install | clean
#   make test T=space CASE='evict*'     one test program, one case
#
# VARIANT=release (default), debug (all invariants checked), asan (debug with ASan and UBSan) picks the build folder; BUILD=FOLDER names
# another one for the program (CC=clang BUILD=build-clang); tests use build/. V=1 shows the commands, DEPS=skip installs nothing.

VARIANT ?= release
BUILD   := build$(if $(filter-out release,$(VARIANT)),/$(VARIANT))
PREFIX  ?= /usr/local
CC      ?= cc

VERSION := 0.1.0
CPPFLAGS += -D_GNU_SOURCE -DUVMSIM_VERSION='"$(VERSION)"' -DUVMSIM_INCLUDE='"$(PREFIX)/include"' -Isrc -Isrc/include -Isim -Itraces -Ipolicies -I.
CFLAGS_COMMON := -std=c11 -Wall -Wextra -Werror -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes \
                 -fvisibility=hidden -fPIC -g -MMD -MP
CFLAGS_release := -O2 -DNDEBUG
CFLAGS_debug   := -O1 -DUVM_DEBUG
CFLAGS_asan    := -O1 -DUVM_DEBUG -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CFLAGS_fuzz    := -O1 -DUVM_DEBUG -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
CFLAGS += $(CFLAGS_COMMON) $(CFLAGS_$(VARIANT))
LDFLAGS += $(filter -fsanitize=%,$(CFLAGS_$(VARIANT)))
LIBS := -lzstd -lz -lcjson -linih -luv -lm -ldl -lpthread
LIBS_release := -ljemalloc

LIB_SRC := $(filter-out src/cli/main.c,$(wildcard src/*.c src/base/*.c src/core/*.c src/core/*/*.c src/report/*.c src/cli/*.c \
             sim/machine/*.c sim/model/*.c policies/*.c traces/*.c traces/readers/*.c traces/writers/*.c))
PROFILES := $(sort $(wildcard sim/machine/profiles/*.ini))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o) $(BUILD)/gen/machines.o $(BUILD)/gen/skeleton.o
LIB     := $(BUILD)/libuvmsim.a
BIN     := $(BUILD)/uvmsim
UNIT    := $(patsubst tests/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/unit/*.c tests/differential/*.c)))
TARGETS := $(filter-out replay,$(patsubst tests/fuzz/%.c,%,$(sort $(wildcard tests/fuzz/*.c))))
CORPUS  := $(TARGETS:%=$(BUILD)/tests/fuzz/%)
TOOLS   := $(BUILD)/tests/conformance/conformance $(BUILD)/tests/bench/bench
objects = $(patsubst %.c,$(BUILD)/%.o,$(wildcard $(1)/*.c))

# One line a step, unless V=1.
SUBMAKE = $(MAKE) --no-print-directory $(if $(V),,-s)
CC_LINE = $(if $(V),,@echo "  CC    $@";)
LD_LINE = $(if $(V),,@echo "  LINK  $@";)

.PHONY: all demo test deps conformance bench asan memcheck fuzz soak fuzzers lint format install clean unit corpus needs-clang needs-own-build
all: $(BIN)
	@:

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC_LINE)$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

# Profiles and the skeleton of a policy become string literals, so the program works from any directory.
literal = sed -e 's/\\/\\\\/g; s/"/\\"/g; s/^/   "/; s/$$/\\n"/'
$(BUILD)/gen/machines.c: $(PROFILES) Makefile
	@mkdir -p $(@D)
	@{ echo '#include "machine/machine.h"'; echo 'const struct uvm_machine_entry uvm_machines[] = {'; \
	   for f in $(PROFILES); do printf '  {"%s",\n' "$$(basename $$f .ini)"; \
	     $(literal) $$f; echo '  },'; done; echo '  {0, 0}};'; } > $@
$(BUILD)/gen/skeleton.c: policies/skeleton/skeleton.c Makefile
	@mkdir -p $(@D)
	@{ echo '#include "policies.h"'; echo 'const char uvm_skeleton[] ='; $(literal) $<; echo '   ;'; } > $@
$(BUILD)/gen/%.o: $(BUILD)/gen/%.c
	$(CC_LINE)$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

$(LIB): $(LIB_OBJ)
	@rm -f $@
	@$(AR) rcs $@ $^
$(BIN): $(BUILD)/src/cli/main.o $(LIB)
	$(LD_LINE)$(CC) $(LDFLAGS) $^ $(LIBS) $(LIBS_$(VARIANT)) -rdynamic -o $@
$(UNIT): $(BUILD)/tests/%: $(BUILD)/tests/%.o $(LIB)
	$(LD_LINE)$(CC) $(LDFLAGS) $^ $(LIBS) -lcmocka -o $@
$(CORPUS): $(BUILD)/tests/fuzz/%: $(BUILD)/tests/fuzz/%.o $(BUILD)/tests/fuzz/replay.o $(LIB)
	$(LD_LINE)$(CC) $(LDFLAGS) $^ $(LIBS) -o $@
$(BUILD)/tests/conformance/conformance: $(call objects,tests/conformance) $(LIB)
	$(LD_LINE)$(CC) $(LDFLAGS) $^ $(LIBS) $(LIBS_$(VARIANT)) -o $@
$(BUILD)/tests/bench/bench: $(call objects,tests/bench) $(LIB)
	$(LD_LINE)$(CC) $(LDFLAGS) $^ $(LIBS) $(LIBS_$(VARIANT)) -o $@

unit: $(UNIT)
corpus: $(CORPUS)

# One command each for a fresh machine. DEPS=skip builds with what is there.
deps:
	@[ "$(DEPS)" = skip ] || tools/deps.sh
demo: deps
	@$(SUBMAKE) all
	@tests/demo.sh $(BUILD)/uvmsim

# The quick suite. T=NAME runs one test program (build/.../tests/*/NAME), CASE='glob' one case of it.
ifdef T
ONE := $(filter %/$(T),$(patsubst $(BUILD)/%,build/debug/%,$(UNIT)))
test: needs-own-build deps
	@[ -n "$(ONE)" ] || { echo "no test program is named $(T); there are: $(notdir $(UNIT))" >&2; exit 2; }
	@$(SUBMAKE) VARIANT=debug $(ONE)
	@CASE='$(CASE)' $(ONE)
else
test: needs-own-build deps
	@$(SUBMAKE) all $(TOOLS)
	@$(SUBMAKE) VARIANT=asan all unit corpus build/asan/tests/conformance/conformance
	@$(SUBMAKE) VARIANT=debug unit
	@tests/suite.sh | tests/run.sh
endif
needs-own-build:
	@case '$(origin BUILD)' in file) ;; *) echo "tests are built in build/, a folder for each variant: leave BUILD out" >&2; exit 2 ;; esac
conformance: deps
	@$(SUBMAKE) all $(BUILD)/tests/conformance/conformance
	@$(BUILD)/tests/conformance/conformance traces/recorded/h200
bench: deps
	@$(SUBMAKE) all $(TOOLS)
	@$(BUILD)/tests/bench/bench
asan: needs-own-build deps
	@$(SUBMAKE) VARIANT=asan all unit build/asan/tests/conformance/conformance
	@tests/suite.sh asan | tests/run.sh
memcheck: needs-own-build deps
	@$(SUBMAKE) VARIANT=debug unit
	@tests/suite.sh memcheck | tests/run.sh

# Fuzzing needs clang. FUZZ_SECONDS a target; the corpus is kept in tests/fuzz/corpus.
FUZZERS := $(TARGETS:%=$(BUILD)/fuzz_%)
$(FUZZERS): $(BUILD)/fuzz_%: $(BUILD)/tests/fuzz/%.o $(LIB)
	$(LD_LINE)$(CC) $(LDFLAGS) -fsanitize=fuzzer $^ $(LIBS) -o $@
fuzzers: $(FUZZERS)
needs-clang:
	@command -v clang >/dev/null || { echo "fuzzing needs clang (Debian: apt-get install clang)" >&2; exit 2; }
fuzz: needs-own-build needs-clang deps
	@$(SUBMAKE) CC=clang VARIANT=fuzz fuzzers
	@FUZZ_SECONDS=$(or $(FUZZ_SECONDS),60) tests/suite.sh fuzz | tests/run.sh
# The random traces begin at seed SOAK_SEED; a failure names the seed.
soak: needs-own-build needs-clang deps
	@$(SUBMAKE) VARIANT=asan all build/asan/tests/unit/session_property
	@$(SUBMAKE) CC=clang VARIANT=fuzz fuzzers
	@SOAK_SEED=$(or $(SOAK_SEED),$(shell date +%s)) SOAK_SECONDS=$(or $(SOAK_SECONDS),600) FUZZ_SECONDS=$(or $(FUZZ_SECONDS),1200) \
	  tests/suite.sh soak | tests/run.sh

lint:
	@tests/lint/includes.sh && tests/lint/size.sh && echo "lint: clean"
format:
	@command -v clang-format >/dev/null || { echo "formatting needs clang-format (Debian: apt-get install clang-format)" >&2; exit 2; }
	clang-format -i $$(git ls-files '*.c' '*.h')

install: all
	install -D -m 755 $(BUILD)/uvmsim $(DESTDIR)$(PREFIX)/bin/uvmsim
	install -D -m 644 src/include/uvmsim/policy.h $(DESTDIR)$(PREFIX)/include/uvmsim/policy.h
	install -D -m 644 docs/man/uvmsim.1 $(DESTDIR)$(PREFIX)/share/man/man1/uvmsim.1
	install -D -m 644 completion/uvmsim.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/uvmsim
	install -d $(DESTDIR)$(PREFIX)/share/doc/uvmsim
	install -m 644 README.md docs/*.md $(DESTDIR)$(PREFIX)/share/doc/uvmsim

clean:
	rm -rf build $(BUILD)

-include $(LIB_OBJ:.o=.d) $(UNIT:=.d) $(CORPUS:=.d) $(patsubst %.o,%.d,$(call objects,tests/conformance) $(call objects,tests/bench)) $(BUILD)/src/cli/main.d
