# Thin front of CMake. `make demo` and `make test` work on a fresh Debian 12 as root.
BUILD ?= build
JOBS ?= $(shell nproc)

all: build
build: deps
	@cmake -S . -B $(BUILD) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	@cmake --build $(BUILD) -j $(JOBS) -- --no-print-directory
deps:
	@sh scripts/setup.sh
test: build
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)
clean:
	rm -rf build build-*
.PHONY: all build deps test clean
