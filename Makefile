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
# Replays the trace that the project ships, then the published fio table at demo scale.
demo: build
	@$(BUILD)/foliage replay data/demo.csv.zst --memory 1%,5%,10% --policy clru,mglru,fg,lru,s3fifo,arc,belady -j $(JOBS)
	@$(BUILD)/foliage bench fio-read --demo -j $(JOBS)
bench: build
	@cmake --build $(BUILD) -j $(JOBS) --target benches -- --no-print-directory
	@$(BUILD)/bench_replay
	@sh bench/instructions.sh $(BUILD)/bench_replay
PREFIX ?= /usr/local
install: build
	@cmake --install $(BUILD) --prefix $(PREFIX)
clean:
	rm -rf build build-*
.PHONY: all build deps test demo bench install clean
