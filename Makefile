# SPDX-License-Identifier: MIT
# Thin front of CMake. `make demo` and `make test` work on a fresh Debian 12 as root with git, make and a network.
#
#   make            the release in build/: the tool is build/foliage
#   make demo       builds the tool and shows it on a real program's trace
#   make test       builds and runs every test
#   make bench      speed, side by side
#   make install    PREFIX=/usr/local, DESTDIR=
#   make deb        Debian packages in build/packages
#   make amalgamation   the library as one foliage.c and one foliage.h, in build/amalgamation
#   make format     clang-format on every C file; `make check`: format, documents, includes, library
#
# CONFIG="-DFOLIAGE_WERROR=ON ..." goes to cmake, BUILD= is the folder, V=1 shows the commands.
BUILD ?= build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
CONFIG ?=

cmake_build = cmake --build $(BUILD) -j $(JOBS) $(if $(V),-v) --target $(1) -- --no-print-directory $(if $(V),,-s)

all: configure
	@$(call cmake_build,all)

configure:
	@sh scripts/setup.sh build
	@sh scripts/configure.sh $(BUILD) $(CONFIG)

demo: configure
	@$(call cmake_build,foliage_bin)
	@sh scripts/demo.sh $(BUILD)/foliage $(JOBS)

test:
	@sh scripts/setup.sh build test
	@sh scripts/configure.sh $(BUILD) $(CONFIG)
	@$(call cmake_build,all)
	@$(call cmake_build,tests)
	@sh scripts/run-tests.sh $(BUILD) -j $(JOBS)

bench: all
	@$(call cmake_build,benches)
	@$(BUILD)/bench_replay
	@sh bench/instructions.sh $(BUILD)/bench_replay

install: all
	@cmake --install $(BUILD) --prefix $(PREFIX)

deb:
	@sh scripts/setup.sh build deb
	@sh scripts/configure.sh $(BUILD) $(CONFIG)
	@$(call cmake_build,all)
	@sh scripts/make-deb.sh $(BUILD) $(BUILD)/packages

amalgamation:
	@command -v python3 >/dev/null || sh scripts/setup.sh test
	@python3 scripts/amalgamate.py $(BUILD)/amalgamation
	@echo $(BUILD)/amalgamation/foliage.c $(BUILD)/amalgamation/foliage.h

check: all
	@sh scripts/check-format.sh
	@sh scripts/check-includes.sh
	@sh scripts/check-docs.sh $(BUILD)/foliage
	@sh scripts/check-library.sh $(BUILD)/libfoliage.so

format:
	@sh scripts/check-format.sh --fix

clean:
	rm -rf build build-*

.PHONY: all configure demo test bench install deb amalgamation check format clean
