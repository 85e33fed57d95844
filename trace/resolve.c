/* SPDX-License-Identifier: MIT
 *
 * Page numbers to dense ids.
 *
 * An open-addressing table maps a page to its id: 4-byte slots, linear probing, at most 3/4 full. A
 * slot of a table of 2^k holds id + 1 in its low k bits and bits of the page's hash in the others.
 * It does not hold the page: pages[id] does, and the hash bits make looking there for nothing rare.
 * So the table takes 5.3 to 10.7 bytes a page, and since pages[] holds all keys, growing frees the
 * old table before the new one is filled.
 *
 * Both memory accesses of a lookup are known ahead for a whole batch of pages: one pass hashes and
 * prefetches slots, the next reads the slots and prefetches pages[], the last decides.
 */
#include "trace/resolve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "base/mem.h"
#include "foliage/policy.h"

enum {
	BATCH = 256,
	FIRST_SLOTS = 1 << 12,
	FIRST_IDS = 1 << 16,
	HUGE_FROM = 16 << 20,
	RECORDS = 2048,          /* read at once */
	PROGRESS_STEP = 1 << 16, /* accesses between two calls of progress() */
};

/* What 3/4 of 2^32 slots hold. */
#define MOST_IDS (UINT64_C(3) << 30)

struct resolver {
	struct resolved out;
	uint64_t limit;
	uint64_t room_n, room_ids; /* entries of ids (and ops), of pages */
	uint32_t *slots;           /* 0: free */
	uint64_t nr_slots;
	unsigned int shift; /* 64 - log2(nr_slots) */
	size_t queued;
	int failed; /* sticky: a table that could not grow is gone */
	uint8_t op; /* of the queued ones */
	uint64_t queue[BATCH];
};

static uint64_t page_hash(uint64_t page)
{
	page ^= page >> 32;
	page *= UINT64_C(0x9E3779B97F4A7C15);
	page ^= page >> 29;
	return page * UINT64_C(0xBF58476D1CE4E5B9);
}

/* Grow without copying: the pages move in the page tables. These tables begin too small for huge
 * pages and do not ask for them later: a huge page at the end, mostly unused, costs a small trace
 * more than it brings. */
static int table_resize(void **table, size_t old, size_t new)
{
	void *p = *table ? mremap(*table, old, new, MREMAP_MAYMOVE) : mem_table(new);

	if (!p || p == MAP_FAILED)
		return -ENOMEM;
	*table = p;
	return 0;
}

static int grow_accesses(struct resolver *r)
{
	uint64_t room = r->room_n ? 2 * r->room_n : FIRST_IDS;
	void *ids = r->out.ids, *ops = r->out.ops;

	if (table_resize(&ids, r->room_n * sizeof(*r->out.ids), room * sizeof(*r->out.ids)))
		return -ENOMEM;
	r->out.ids = ids;
	if (ops) {
		if (table_resize(&ops, r->room_n, room)) {
			/* Both must have one size for freeing; shrinking back cannot fail. */
			table_resize(&ids, room * sizeof(*r->out.ids),
				     r->room_n * sizeof(*r->out.ids));
			r->out.ids = ids;
			return -ENOMEM;
		}
		r->out.ops = ops;
	}
	r->room_n = room;
	return 0;
}

static int grow_pages(struct resolver *r)
{
	uint64_t room = r->room_ids ? 2 * r->room_ids : FIRST_SLOTS;
	void *pages = r->out.pages;

	if (table_resize(&pages, r->room_ids * sizeof(*r->out.pages), room * sizeof(*r->out.pages)))
		return -ENOMEM;
	/* Unlike the others it is walked at random. */
	if (room * sizeof(*r->out.pages) >= HUGE_FROM)
		madvise(pages, room * sizeof(*r->out.pages), MADV_HUGEPAGE);
	r->out.pages = pages;
	r->room_ids = room;
	return 0;
}

/* The bits of a slot that come from the hash; where to begin looking comes from its other end. */
static uint32_t slot_tag(const struct resolver *r, uint64_t hash)
{
	return (uint32_t)hash & ~(uint32_t)(r->nr_slots - 1);
}

static void slot_put(struct resolver *r, uint64_t hash, uint32_t id)
{
	uint64_t i = hash >> r->shift, mask = r->nr_slots - 1;

	while (r->slots[i])
		i = (i + 1) & mask;
	r->slots[i] = slot_tag(r, hash) | (id + 1);
}

static int grow_slots(struct resolver *r)
{
	uint64_t nr = r->nr_slots ? 2 * r->nr_slots : FIRST_SLOTS;
	enum { AHEAD = 16 };

	mem_table_free(r->slots, r->nr_slots * sizeof(*r->slots));
	r->nr_slots = 0;
	r->slots = mem_table(nr * sizeof(*r->slots));
	if (!r->slots)
		return -ENOMEM;
	r->nr_slots = nr;
	r->shift = 64 - order_base_2(nr);
	for (uint32_t id = 0; id < r->out.nr_ids; id++) {
		if (id + AHEAD < r->out.nr_ids)
			__builtin_prefetch(
				&r->slots[page_hash(r->out.pages[id + AHEAD]) >> r->shift], 1);
		slot_put(r, page_hash(r->out.pages[id]), id);
	}
	return 0;
}

static uint32_t lookup(struct resolver *r, uint64_t page, uint64_t hash)
{
	uint64_t i = hash >> r->shift, mask = r->nr_slots - 1;
	uint32_t tag = slot_tag(r, hash);

	for (;; i = (i + 1) & mask) {
		uint32_t slot = r->slots[i], id = (slot & (uint32_t)mask) - 1;

		if (!slot) {
			r->slots[i] = tag | (r->out.nr_ids + 1);
			r->out.pages[r->out.nr_ids] = page;
			return r->out.nr_ids++;
		}
		if ((slot & ~(uint32_t)mask) == tag && r->out.pages[id] == page)
			return id;
	}
}

static int make_room(struct resolver *r, size_t n)
{
	uint64_t most = (uint64_t)r->out.nr_ids + n;
	int code = 0;

	if (most > MOST_IDS)
		return -E2BIG;
	if (most > r->nr_slots / 4 * 3)
		code = grow_slots(r);
	if (!code && most > r->room_ids)
		code = grow_pages(r);
	if (!code && r->out.n + n > r->room_n)
		code = grow_accesses(r);
	return code;
}

/* Ops appear with the first access that is no plain read; fresh tables are zero, which is one. */
static int set_ops(struct resolver *r, size_t n)
{
	if (!r->out.ops) {
		if (!r->op)
			return 0;
		r->out.ops = mem_table(r->room_n);
		if (!r->out.ops)
			return -ENOMEM;
	}
	memset(r->out.ops + r->out.n, r->op, n);
	return 0;
}

static int resolve_queue(struct resolver *r)
{
	uint64_t hash[BATCH];
	size_t n = r->queued;
	uint32_t *ids, id_bits;
	int code;

	if (!n || r->failed)
		return r->failed;
	code = make_room(r, n);
	if (!code)
		code = set_ops(r, n);
	if (code) {
		r->failed = code;
		return code;
	}
	id_bits = (uint32_t)(r->nr_slots - 1);
	for (size_t i = 0; i < n; i++) {
		hash[i] = page_hash(r->queue[i]);
		__builtin_prefetch(&r->slots[hash[i] >> r->shift]);
	}
	for (size_t i = 0; i < n; i++) {
		uint32_t slot = r->slots[hash[i] >> r->shift];

		if (slot && (slot & ~id_bits) == slot_tag(r, hash[i]))
			__builtin_prefetch(&r->out.pages[(slot & id_bits) - 1]);
	}
	ids = r->out.ids + r->out.n;
	for (size_t i = 0; i < n; i++)
		ids[i] = lookup(r, r->queue[i], hash[i]);
	r->out.n += n;
	r->queued = 0;
	return 0;
}

int resolver_open(uint64_t limit, struct resolver **resolver)
{
	struct resolver *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->limit = limit ? limit : UINT64_MAX;
	*resolver = r;
	return 0;
}

int resolver_add(struct resolver *r, const struct trace_record *records, size_t n)
{
	static const uint8_t access_of[TRACE_NR_OPS] = {
		[TRACE_WRITE] = FOLIAGE_ACCESS_WRITE,
		[TRACE_LOAD] = FOLIAGE_ACCESS_MAPPED,
		[TRACE_STORE] = FOLIAGE_ACCESS_MAPPED | FOLIAGE_ACCESS_WRITE,
		[TRACE_EXEC] = FOLIAGE_ACCESS_MAPPED | FOLIAGE_ACCESS_EXEC,
	};

	for (size_t i = 0; i < n; i++) {
		uint64_t page = trace_page_key(records[i].file, records[i].page);
		uint64_t left = r->limit - r->out.n - r->queued;
		uint32_t nr = records[i].nr < left ? records[i].nr : (uint32_t)left;
		uint8_t op = access_of[records[i].op];
		int code;

		if (op != r->op) {
			code = resolve_queue(r);
			if (code)
				return code;
			r->op = op;
		}
		while (nr--) {
			r->queue[r->queued++] = page++;
			if (r->queued < BATCH)
				continue;
			code = resolve_queue(r);
			if (code)
				return code;
		}
		if (left <= records[i].nr)
			return 1;
	}
	return 0;
}

uint64_t resolver_accesses(const struct resolver *r)
{
	return r->out.n + r->queued;
}

/* Cut a table to what is used, so that its size follows from n and nr_ids. */
static void *cut(void *table, size_t room, size_t used)
{
	if (!table || !used) {
		mem_table_free(table, room);
		return NULL;
	}
	if (table_resize(&table, room, used))
		return table; /* shrinking in place does not fail */
	return table;
}

void resolver_finish(struct resolver *r, struct resolved *out)
{
	/* What is left in the queue when memory ran out was never resolved, and the caller knows.
	 */
	resolve_queue(r);
	mem_table_free(r->slots, r->nr_slots * sizeof(*r->slots));
	r->out.ids =
		cut(r->out.ids, r->room_n * sizeof(*r->out.ids), r->out.n * sizeof(*r->out.ids));
	r->out.ops = cut(r->out.ops, r->room_n, r->out.n);
	r->out.pages = cut(r->out.pages, r->room_ids * sizeof(*r->out.pages),
			   r->out.nr_ids * sizeof(*r->out.pages));
	*out = r->out;
	free(r);
}

struct progress {
	bool (*call)(void *ctx, uint64_t accesses);
	void *ctx;
	uint64_t next;
};

/* One path: 0, 1 at the limit, or a negative errno. */
static int resolve_path(struct resolver *r, const char *path, const struct trace_options *options,
			struct progress *progress, struct trace_record *records, struct err *err)
{
	struct trace *trace;
	ssize_t n;
	int code = trace_open(path, options, &trace, err);

	if (code)
		return code;
	while ((n = trace_read(trace, records, RECORDS, err)) > 0) {
		code = resolver_add(r, records, (size_t)n);
		if (code == -E2BIG)
			err_set(err, code, "%s: more than 3 * 2^30 unique pages", path);
		else if (code < 0)
			err_set(err, code, "%s: no memory", path);
		if (!code && progress->call && resolver_accesses(r) >= progress->next) {
			progress->next = resolver_accesses(r) + PROGRESS_STEP;
			if (!progress->call(progress->ctx, resolver_accesses(r)))
				code = err_set(err, -EINTR, "%s: interrupted", path);
		}
		if (code)
			break;
	}
	trace_close(trace);
	return n < 0 ? (int)n : code;
}

int trace_resolve(const char *const *paths, size_t nr_paths, const struct trace_options *options,
		  uint64_t limit, bool (*progress)(void *ctx, uint64_t accesses), void *ctx,
		  struct resolved *out, struct err *err)
{
	struct progress report = {progress, ctx, PROGRESS_STEP};
	struct trace_record *records = malloc(RECORDS * sizeof(*records));
	struct resolver *r;
	int code = records ? resolver_open(limit, &r) : -ENOMEM;

	memset(out, 0, sizeof(*out));
	if (code) {
		free(records);
		return err_set(err, code, "no memory");
	}
	for (size_t i = 0; i < nr_paths && !code; i++)
		code = resolve_path(r, paths[i], options, &report, records, err);
	free(records);
	if (code >= 0) {
		code = resolve_queue(r);
		if (code)
			err_set(err, code, "%s: no memory", paths[nr_paths - 1]);
	}
	resolver_finish(r, out);
	if (!code && !out->n)
		code = err_set(err, -ENODATA, "%s: no page access in it",
			       nr_paths ? paths[0] : "no trace");
	if (code && code != -EINTR)
		resolved_free(out);
	return code;
}
