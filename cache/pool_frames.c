/* SPDX-License-Identifier: MIT
 *
 * Memory of pages: one address range cut into slabs of a power of two, 128 KiB to 2 MiB (then
 * asking for huge pages). A slab with a page in it belongs to one kind of page:
 *
 * 	| frame 0 | frame 1 | ... | frame n-1 | extra 0 | ... | extra n-1 | owner 0 | ... | owner
 * 	n-1 |
 *
 * In a packed kind the extra bytes of a frame follow it at once, so that the beginnings of pages do not
 * all compete for the same few sets of the processor's caches.
 *
 * `owner` is the slot of the page in the frame, or, of a free frame, the next free one. A slab
 * without pages belongs to nobody and goes to whichever kind asks first, or back to the system. At
 * most `limit` slabs are in memory.
 *
 * One lock, held for a few list operations; frames are named by their address.
 */
#include "cache/pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FRAME_NONE UINT32_MAX

static inline char *slab_at(const struct pool_frames *f, uint32_t slab)
{
	return f->base + ((size_t)slab << f->slab_shift);
}

static inline uint32_t slab_of(const struct pool_frames *f, const void *data)
{
	return (uint32_t)(((const char *)data - f->base) >> f->slab_shift);
}

static inline uint32_t frame_of(const struct pool_frames *f, const struct pool_kind *k,
				const void *data)
{
	size_t offset = (size_t)((const char *)data - f->base) & (((size_t)1 << f->slab_shift) - 1);

	return (uint32_t)offset / k->stride;
}

static inline uint32_t *owners_of(const struct pool_frames *f, const struct pool_kind *k,
				  uint32_t slab)
{
	return (uint32_t *)(slab_at(f, slab) + (size_t)k->per_slab * (k->bytes + k->extra));
}

int pool_frames_init(struct pool_frames *f, uint64_t bytes, uint64_t max_bytes)
{
	size_t slab;

	f->slab_shift = fls64(MIN(MAX(bytes / 32, (uint64_t)SLAB_MIN), (uint64_t)SLAB_MAX)) - 1;
	slab = (size_t)1 << f->slab_shift;
	f->nr_slabs = (uint32_t)(max_bytes >> f->slab_shift);
	f->mapped = ((size_t)f->nr_slabs << f->slab_shift) + slab;
	f->free = f->released = SLAB_NONE;
	pthread_mutex_init(&f->lock, NULL);
	f->slabs = calloc(f->nr_slabs, sizeof(*f->slabs));
	f->mapping = mmap(NULL, f->mapped, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (f->mapping == MAP_FAILED)
		f->mapping = NULL;
	if (!f->slabs || !f->mapping)
		return -ENOMEM;
	f->base = (char *)(((uintptr_t)f->mapping + slab - 1) & ~(uintptr_t)(slab - 1));
	if (slab >= SLAB_MAX)
		madvise(f->base, (size_t)f->nr_slabs << f->slab_shift, MADV_HUGEPAGE);
	return 0;
}

void pool_frames_fini(struct pool_frames *f)
{
	if (f->mapping)
		munmap(f->mapping, f->mapped);
	free(f->slabs);
}

int pool_frames_kind(struct pool_frames *f, uint32_t bytes, uint32_t extra, bool packed)
{
	uint32_t nr, i;
	int rc = -ENOSPC;

	extra = (extra + 15) & ~15u;
	pthread_mutex_lock(&f->lock);
	nr = atomic_load_explicit(&f->nr_kinds, memory_order_relaxed);
	for (i = 0; i < nr; i++)
		if (f->kinds[i].bytes == bytes && f->kinds[i].extra == extra &&
		    f->kinds[i].packed == packed)
			break;
	if (i < POOL_KINDS) {
		rc = (int)i;
		if (i == nr) {
			f->kinds[i] = (struct pool_kind){
				.bytes = bytes,
				.extra = extra,
				.shift = fls64(bytes) - 1,
				.packed = packed,
				.stride = packed ? bytes + extra : bytes,
				.per_slab = (uint32_t)(((size_t)1 << f->slab_shift) /
						       (bytes + extra + sizeof(uint32_t))),
				.partial = SLAB_NONE,
			};
			atomic_store_explicit(&f->nr_kinds, nr + 1, memory_order_release);
		}
	}
	pthread_mutex_unlock(&f->lock);
	return rc;
}

static void partial_add(struct pool_frames *f, struct pool_kind *k, int32_t i)
{
	struct pool_slab *s = &f->slabs[i];

	s->listed = true;
	s->prev = SLAB_NONE;
	s->next = k->partial;
	if (k->partial != SLAB_NONE)
		f->slabs[k->partial].prev = i;
	k->partial = i;
}

static void partial_del(struct pool_frames *f, struct pool_kind *k, int32_t i)
{
	struct pool_slab *s = &f->slabs[i];

	if (!s->listed)
		return;
	s->listed = false;
	if (s->next != SLAB_NONE)
		f->slabs[s->next].prev = s->prev;
	if (s->prev != SLAB_NONE)
		f->slabs[s->prev].next = s->next;
	else
		k->partial = s->next;
}

/* A slab without a kind, in memory as far as the limit allows. */
static int32_t take_slab(struct pool_frames *f)
{
	uint32_t backed = atomic_load_explicit(&f->backed, memory_order_relaxed);
	int32_t i = f->free;

	if (i != SLAB_NONE) {
		f->free = f->slabs[i].next;
		return i;
	}
	if (backed >= atomic_load_explicit(&f->limit, memory_order_relaxed))
		return SLAB_NONE;
	i = f->released;
	if (i != SLAB_NONE)
		f->released = f->slabs[i].next;
	else if (f->fresh < f->nr_slabs)
		i = (int32_t)f->fresh++;
	else
		return SLAB_NONE;
	atomic_store_explicit(&f->backed, backed + 1, memory_order_relaxed);
	return i;
}

static int32_t kind_slab(struct pool_frames *f, struct pool_kind *k, uint32_t kind)
{
	int32_t i = k->partial;

	if (i != SLAB_NONE)
		return i;
	i = take_slab(f);
	if (i == SLAB_NONE)
		return SLAB_NONE;
	f->slabs[i] = (struct pool_slab){
		.nr_free = k->per_slab, .free_head = FRAME_NONE, .kind = (int16_t)kind};
	k->slabs++;
	partial_add(f, k, i);
	return i;
}

void *pool_frames_alloc(struct pool_frames *f, uint32_t kind)
{
	struct pool_kind *k = &f->kinds[kind];
	struct pool_slab *s;
	uint32_t frame, *owners;
	char *data = NULL;
	int32_t i;

	pthread_mutex_lock(&f->lock);
	i = kind_slab(f, k, kind);
	if (i != SLAB_NONE) {
		s = &f->slabs[i];
		owners = owners_of(f, k, (uint32_t)i);
		frame = s->free_head;
		if (frame != FRAME_NONE)
			s->free_head = __atomic_load_n(&owners[frame], __ATOMIC_RELAXED);
		else
			frame = s->fresh++;
		__atomic_store_n(&owners[frame], (uint32_t)FOLIO_NONE, __ATOMIC_RELAXED);
		if (--s->nr_free == 0)
			partial_del(f, k, i);
		k->used++;
		data = slab_at(f, (uint32_t)i) + (size_t)frame * k->stride;
	}
	pthread_mutex_unlock(&f->lock);
	return data;
}

static void slab_to_system(struct pool_frames *f, int32_t i)
{
	madvise(slab_at(f, (uint32_t)i), (size_t)1 << f->slab_shift, MADV_DONTNEED);
	f->slabs[i].next = f->released;
	f->released = i;
	atomic_fetch_sub_explicit(&f->backed, 1, memory_order_relaxed);
}

/* The last page left the slab. */
static void slab_empty(struct pool_frames *f, struct pool_kind *k, int32_t i)
{
	struct pool_slab *s = &f->slabs[i];

	partial_del(f, k, i);
	s->kind = -1;
	s->draining = false;
	k->slabs--;
	if (atomic_load_explicit(&f->backed, memory_order_relaxed) >
	    atomic_load_explicit(&f->limit, memory_order_relaxed)) {
		slab_to_system(f, i);
		return;
	}
	s->next = f->free;
	f->free = i;
}

void pool_frames_free(struct pool_frames *f, uint32_t kind, void *data)
{
	struct pool_kind *k = &f->kinds[kind];
	uint32_t slab = slab_of(f, data), frame = frame_of(f, k, data),
		 *owners = owners_of(f, k, slab);
	struct pool_slab *s = &f->slabs[slab];

	pthread_mutex_lock(&f->lock);
	__atomic_store_n(&owners[frame], s->free_head, __ATOMIC_RELAXED);
	s->free_head = frame;
	k->used--;
	if (++s->nr_free == k->per_slab)
		slab_empty(f, k, (int32_t)slab);
	else if (!s->listed && !s->draining)
		partial_add(f, k, (int32_t)slab);
	pthread_mutex_unlock(&f->lock);
}

void *pool_frames_extra(const struct pool_frames *f, uint32_t kind, void *data)
{
	const struct pool_kind *k = &f->kinds[kind];

	if (!k->extra)
		return NULL;
	if (k->packed)
		return (char *)data + k->bytes;
	return slab_at(f, slab_of(f, data)) + (size_t)k->per_slab * k->bytes +
	       (size_t)frame_of(f, k, data) * k->extra;
}

void pool_frames_set_owner(struct pool_frames *f, uint32_t kind, void *data, folio_id owner)
{
	const struct pool_kind *k = &f->kinds[kind];

	__atomic_store_n(&owners_of(f, k, slab_of(f, data))[frame_of(f, k, data)], (uint32_t)owner,
			 __ATOMIC_RELAXED);
}

static uint64_t kind_slack(const struct pool_kind *k)
{
	return (k->slabs * k->per_slab - k->used) * (k->bytes + k->extra);
}

uint64_t pool_frames_slack(struct pool_frames *f, int kind)
{
	uint64_t most = 0;

	pthread_mutex_lock(&f->lock);
	for (uint32_t i = 0; i < atomic_load_explicit(&f->nr_kinds, memory_order_relaxed); i++)
		if ((int)i != kind)
			most = MAX(most, kind_slack(&f->kinds[i]));
	pthread_mutex_unlock(&f->lock);
	return most;
}

bool pool_frames_release(struct pool_frames *f, uint32_t target)
{
	bool done;

	pthread_mutex_lock(&f->lock);
	while (atomic_load_explicit(&f->backed, memory_order_relaxed) > target &&
	       f->free != SLAB_NONE) {
		int32_t i = f->free;

		f->free = f->slabs[i].next;
		slab_to_system(f, i);
	}
	done = atomic_load_explicit(&f->backed, memory_order_relaxed) <= target;
	pthread_mutex_unlock(&f->lock);
	return done;
}

/* The `skip`th best slab to empty: by free frames, as a share of the slab, then by address. Not
 * of a kind with less slack than `slack`: its slab would be its only one with room, and it would
 * want one back at once. */
static int32_t choose_slab(const struct pool_frames *f, int kind, uint64_t slack, uint32_t skip)
{
	uint64_t bound = UINT64_MAX;
	int32_t best;

	for (;;) {
		uint64_t most = 0;

		best = SLAB_NONE;
		for (uint32_t i = 0; i < f->fresh; i++) {
			const struct pool_slab *s = &f->slabs[i];
			uint64_t rank;

			if (s->kind < 0 || s->kind == kind || s->draining ||
			    kind_slack(&f->kinds[s->kind]) < slack)
				continue;
			rank = ((uint64_t)s->nr_free * 65536 / f->kinds[s->kind].per_slab + 1)
				       << 32 |
			       (UINT32_MAX - i);
			if (rank < bound && rank > most) {
				most = rank;
				best = (int32_t)i;
			}
		}
		if (best == SLAB_NONE || !skip--)
			return best;
		bound = most;
	}
}

int pool_frames_drain_begin(struct pool_frames *f, int kind, uint64_t slack, uint32_t skip,
			    folio_id *owners, uint32_t *nr)
{
	int32_t i;

	pthread_mutex_lock(&f->lock);
	i = choose_slab(f, kind, slack, skip);
	if (i != SLAB_NONE) {
		struct pool_slab *s = &f->slabs[i];
		struct pool_kind *k = &f->kinds[s->kind];
		uint32_t *of = owners_of(f, k, (uint32_t)i);

		partial_del(f, k, i);
		s->draining = true;
		*nr = s->fresh;
		for (uint32_t j = 0; j < s->fresh; j++)
			owners[j] = (folio_id)__atomic_load_n(&of[j], __ATOMIC_RELAXED);
		for (uint32_t j = s->free_head; j != FRAME_NONE;
		     j = __atomic_load_n(&of[j], __ATOMIC_RELAXED))
			owners[j] = FOLIO_NONE;
	}
	pthread_mutex_unlock(&f->lock);
	return i;
}

bool pool_frames_drain_end(struct pool_frames *f, int slab)
{
	struct pool_slab *s = &f->slabs[slab];
	bool empty;

	pthread_mutex_lock(&f->lock);
	/* Emptied, it lost the mark, and may serve another kind by now. */
	empty = !s->draining;
	if (!empty) {
		s->draining = false;
		if (s->nr_free && !s->listed)
			partial_add(f, &f->kinds[s->kind], slab);
	}
	pthread_mutex_unlock(&f->lock);
	return empty;
}
