/* SPDX-License-Identifier: MIT
 *
 * A cache's own table of its pages. SQLite uses a cache from one thread at a time, its owner here; but
 * pages leave whenever anybody's reclaim says so.
 *
 * An entry leads from a page number to the head of the page and says two things of it: `held`, that
 * the owner has it in its hands, and `leaving`, that it may leave. The owner writes the one and then
 * reads the other; reclaim writes the other, makes all threads pass a barrier, and reads the one (enum
 * foliage_leaving). So a page is found and held, and let go of, by a few plain instructions on memory
 * that no other thread writes, without the pool. Where `leaving` stands the pool is asked, and
 * afterwards it may be taken back. A new page begins with it, so that pages which nobody wants again
 * leave without a barrier.
 *
 * The lock is for everything but that: the owner adds, removes and moves entries under it, others look
 * at entries and bury them. A buried entry still keeps searches going, until the table is made anew.
 */
#ifndef FOLIAGE_SQLITE_INDEX_H
#define FOLIAGE_SQLITE_INDEX_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "foliage/cache.h"

struct cache;

/* In front of SQLite's extra bytes. */
struct head {
	sqlite3_pcache_page page;    /* what SQLite sees */
	struct foliage_page *pooled; /* NULL: allocated */
	struct cache *_Atomic cache; /* NULL: in no index yet */
	struct entry *entry;         /* while it is held */
	uint32_t key, touched;       /* touched: when the pool was last told of an access */
};

/* NOTED: since then threads have not passed a barrier for certain. */
enum leaving { LEAVING_NOT, LEAVING_NOTED, LEAVING_PASSED };
enum held { HELD_NOT, HELD_BY_MARK, HELD_BY_PIN };

struct entry {
	struct head *_Atomic head; /* NULL: free, and searches end here */
	uint32_t key;
	_Atomic uint8_t held;    /* enum held; written by the owner */
	_Atomic uint8_t leaving; /* enum leaving; written under the lock */
	bool allocated;          /* the head has no page of the pool: never leaves by itself */
};

/* The head of an entry that is buried. */
#define BURIED ((struct head *)1)

/* What all indexes share. */
struct indexes {
	_Atomic uint64_t bytes;     /* memory */
	_Atomic uint32_t examining; /* threads that examine pages */
};

struct index {
	struct indexes *all;
	struct entry *entries;
	uint32_t mask, used; /* used: not free, buried ones included */
	pthread_mutex_t lock;
	_Atomic uint32_t nr_pages; /* written under the lock */
	bool closed;               /* goes with its last page */
};

/* False: out of memory. */
bool index_init(struct index *x, struct indexes *all);
void index_fini(struct index *x);

static inline uint32_t index_place(const struct index *x, uint32_t key)
{
	return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) & x->mask;
}

/* The page, held by a mark if it was not held before; NULL: not there, or (`maybe`) the pool must be
 * asked. */
static inline struct head *index_hold(struct index *x, uint32_t key, bool *fresh, bool *maybe)
{
	for (uint32_t i = index_place(x, key);; i = (i + 1) & x->mask) {
		struct entry *e = &x->entries[i];
		struct head *h = atomic_load_explicit(&e->head, memory_order_acquire);

		if (!h)
			return NULL;
		if (e->key != key || h == BURIED)
			continue;
		*fresh = !atomic_load_explicit(&e->held, memory_order_relaxed);
		if (!*fresh)
			return h;
		atomic_store_explicit(&e->held, HELD_BY_MARK, memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
		if (__builtin_expect(!atomic_load_explicit(&e->leaving, memory_order_acquire), 1)) {
			h->entry = e;
			return h;
		}
		atomic_store_explicit(&e->held, HELD_NOT, memory_order_release);
		*maybe = true;
	}
}

/* What came before is seen by whoever takes the page away. */
static inline void index_let_go(struct head *h)
{
	atomic_store_explicit(&h->entry->held, HELD_NOT, memory_order_release);
}

/* ---- by the owner ---- */

/* Room for one more entry; false: out of memory. */
bool index_reserve(struct index *x);
/* There is room for it. From now on the page is held by its pin; one that is allocated has none. */
void index_insert(struct index *x, struct cache *c, struct head *h);
/* A held page goes, or gets another number. */
void index_remove(struct index *x, struct head *h);
void index_rekey(struct index *x, struct head *h, uint32_t key);
/* An unheld or held allocated page of this number; NULL: none. */
struct head *index_allocated(struct index *x, uint32_t key);
/* The pool gave a pin of the page: held by that, and if possible by a mark the next time. */
void index_hold_pin(struct index *x, struct head *h);
/* No more pages come; true: none is left. */
bool index_close(struct index *x);

/* ---- by anybody ---- */

/* The page has left the pool; true: it was the last of a closed index. */
bool index_bury(struct index *x, struct head *h);
/* Of options.leaving: true: a barrier is needed. */
bool index_warn(struct index *x, struct head *h);
bool index_is_marked(struct index *x, struct head *h);

#endif
