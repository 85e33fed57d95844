/* SPDX-License-Identifier: MIT
 *
 * What things cost in the simulated machine: one table, each number with its source. A workload may
 * replace one only by citing a better source for its own machine.
 *
 * Sources: [host] measured by the project's authors on a 2-core x86-64 virtual machine, kernel 6.18;
 * [fio] follows from the published read() table: the time a read takes is hit + refaults * page,
 * fitted to the classic LRU's row alone (docs/published.md); [assumed] an assumption, with the
 * reason.
 */
#ifndef FOLIAGE_MACHINE_COSTS_H
#define FOLIAGE_MACHINE_COSTS_H

#include <stdint.h>

/* Nanoseconds. */
struct machine_costs {
	uint32_t read_hit;     /* read() of one cached page: call, look-up, copy */
	uint32_t read_page;    /* each further page of the same call */
	uint32_t touch;        /* load or store to a mapped page */
	uint32_t fault;        /* page fault on a cached page, or of a zero page */
	uint32_t fault_around; /* each further entry made by the same fault */
	uint32_t page_alloc;   /* allocate, charge, insert one page */
	uint32_t page_copy;    /* copy 4 KiB, as copy-on-write does */
	uint32_t submit_io;    /* one request through the block layer */
	uint32_t lock_section; /* take and drop a lruvec's lock, uncontended */
	uint32_t lock_folio;   /* each folio handled under it */
	uint32_t lock_gen;     /* and what the multi-gen lists add to that */
	uint32_t evict;        /* take one page out of its mapping and free it */
	uint32_t unmap;        /* remove one page-table entry and flush it */
	uint32_t zap;          /* the same in munmap and exit, many at once */
	uint32_t rmap;         /* find one mapping and test its accessed bit */
	uint32_t walk_table;   /* visit one page-table page of 512 entries */
	uint32_t compress;     /* zram: one page in */
	uint32_t decompress;   /* zram: one page out */
	uint32_t fork_table;   /* copy one page-table page */
	uint32_t fork_base;    /* process creation without its page tables */
	uint32_t context_switch;
	uint32_t quantum; /* how far a task runs ahead of the others */
	uint32_t slice;   /* and how long until others get its CPU */
};

static const struct machine_costs machine_costs_default = {
	.read_hit = 713,    /* [fio] 44.6 ns of 16 jobs; [host] 500 hot, 1,900 random */
	.read_page = 400,   /* [assumed] the copy's share of a read: 4 KiB at 10 GB/s */
	.touch = 15,        /* [host] mapped hit 12-17 */
	.fault = 850,       /* [host] minor fault 850-2,700; the quiet value */
	.fault_around = 50, /* [assumed] a locked look-up and a store: 3 cache misses less */
	.page_alloc = 300,  /* [assumed] half of what a 4 KiB read spends outside the device */
	.page_copy = 850,   /* [host] mapped access + 4 KiB memcpy 800-900 */
	.submit_io = 1500,  /* [assumed] block layer and interrupt, one side, of an NVMe */
	.lock_section = 40, /* [assumed] two uncontended atomics and a cache miss */
	.lock_folio = 60,   /* [assumed] one cold folio: a cache miss or less */
	.lock_gen =
		60,   /* [assumed] flag word and counters change folio by folio, not once a batch */
	.evict = 350, /* [assumed] as page_alloc, and the mapping's slot */
	.unmap = 250, /* [host] zap 94-250 a page in dense ranges, with the flush */
	.zap = 100,   /* [host] 94-112 a page in one call */
	.rmap = 200,  /* [assumed] three cold cache lines */
	.walk_table =
		1200, /* [host] scan 6-7 a page for dense ranges is 3,300; kernel side a third */
	.compress = 2800,       /* [assumed] lzo-rle, about 1.4 GB/s a core, its authors' figure */
	.decompress = 1400,     /* [assumed] about twice that speed */
	.fork_table = 4000,     /* [assumed] 512 entries at 8 ns */
	.fork_base = 100000,    /* [assumed] fork and exit of a small process */
	.context_switch = 1500, /* [assumed] a switch with cold caches */
	.quantum = 20000,       /* [assumed] small against a request to a device */
	.slice = 3000000,       /* [assumed] a desktop scheduler's slice */
};

/* [assumed from published] What an fio job spends on a load besides the memory access: the published rate at
 * 16 GiB and theta 1.4, 780 ns a load of each job, less 0.00205 refaults of 194 us. */
enum { machine_fio_mmap_ns = 380 };

/* Devices: latency of one request, bandwidth of all, requests at once. */
struct machine_device {
	uint64_t latency; /* ns */
	uint64_t ns_per_page;
	uint32_t depth;
};

/* [fio] 12.1 us a page of 16 jobs in a closed loop: 194 us a request for each. [assumed] 3 GB/s. */
static const struct machine_device machine_nvme = {
	.latency = 194000, .ns_per_page = 1365, .depth = 64};
/* [host] O_DIRECT reads of 4 KiB: 65-80 us one at a time, 67-95 k/s 32 deep. */
static const struct machine_device machine_ssd = {
	.latency = 75000, .ns_per_page = 8000, .depth = 32};

#endif
