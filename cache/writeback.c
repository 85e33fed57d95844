/* SPDX-License-Identifier: MIT
 *
 * Write-back. A writer is a piece of fixed memory of 1 MiB. Dirty pages are copied into it, runs of
 * neighbours next to each other, and each run is one request; when it is full or there is no more,
 * all go out and are waited for. Copying, under node->lock, is what lets others write to a page
 * while it is on its way, and lets the kernel keep the memory registered.
 *
 * A page in write-back keeps the pool's dirty mark until it is written; so it stays in memory, and
 * nobody reads it from disk meanwhile. After an error it is dirty again.
 *
 * Epochs: an fsync must wait for what others have in their writers, but not for what they take up
 * later. It changes the epoch and waits for the pages of the one before.
 */
#include "cache/file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SWEEPS = 200, FEW_GROUPS = 64 };

/* Neighbours on their way. */
struct wb_run {
	struct io_request request;
	struct iovec iov;
	struct writer *writer;
	struct file_node *node;
	uint64_t first;
	uint32_t nr, page; /* the first of writer->pages */
	uint32_t epoch;
	int error;
};

struct writer {
	struct foliage_cache *cache;
	struct writer *next;
	char *memory;
	uint32_t used, max; /* pages */
	uint32_t nr_runs;
	_Atomic uint32_t pending;
	int error; /* the first since it was taken */
	struct foliage_page **pages;
	struct wb_run *runs;
};

/* ---- errors ---- */

void writeback_error(struct file_node *n, int error)
{
	n->error = error;
	n->error_seq += n->error_seq == UINT32_MAX ? 2 : 1;
	n->error_seen = false;
}

int writeback_report(struct foliage_file *f)
{
	struct file_node *n = f->node;
	int error = 0;

	pthread_mutex_lock(&n->lock);
	if (atomic_load(&f->error_seq) != n->error_seq) {
		atomic_store(&f->error_seq, n->error_seq);
		n->error_seen = true;
		error = n->error;
	}
	pthread_mutex_unlock(&n->lock);
	return error;
}

/* ---- keeping out ---- */

void writeback_hold(struct file_node *n)
{
	n->hold++;
	while (atomic_load(&n->nr_writeback))
		pthread_cond_wait(&n->cond, &n->lock);
}

void writeback_release(struct file_node *n)
{
	n->hold--;
	pthread_cond_broadcast(&n->cond);
}

/* ---- one writer ---- */

static struct writer *get_writer(struct foliage_cache *c)
{
	struct writer *w;

	pthread_mutex_lock(&c->writers_lock);
	while (!c->free_writers)
		pthread_cond_wait(&c->writers_cond, &c->writers_lock);
	w = c->free_writers;
	c->free_writers = w->next;
	pthread_mutex_unlock(&c->writers_lock);
	w->error = 0;
	return w;
}

static void put_writer(struct writer *w)
{
	struct foliage_cache *c = w->cache;

	pthread_mutex_lock(&c->writers_lock);
	w->next = c->free_writers;
	c->free_writers = w;
	pthread_cond_signal(&c->writers_cond);
	pthread_mutex_unlock(&c->writers_lock);
}

static void run_done(struct io_request *request, uint64_t got, int error)
{
	struct wb_run *run = (struct wb_run *)request;

	(void)got;
	run->error = error;
	atomic_fetch_sub_explicit(&run->writer->pending, 1, memory_order_release);
}

/* The modification time on disk is that of the last write, not of write-back. */
static void set_mtime(struct file_node *n)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, n->mtime};

	if (!n->touched || atomic_load(&n->nr_dirty) || atomic_load(&n->nr_writeback))
		return;
	n->touched = false;
	futimens(node_write_fd(n).plain, times);
}

/* The run is written, or not. */
static void finish_run(struct writer *w, const struct wb_run *run)
{
	struct file_node *n = run->node;
	struct foliage_cache *c = n->cache;
	struct dirty_group *g;

	pthread_mutex_lock(&n->lock);
	g = dirty_find(n, run->first / GROUP_PAGES);
	for (uint32_t i = 0; i < run->nr; i++) {
		uint32_t bit = (run->first + i) % GROUP_PAGES;

		dirty_from_writeback(n, g, bit, run->error);
		foliage_pool_unpin(c->pool, w->pages[run->page + i],
				   g->dirty >> bit & 1 ? 0 : FOLIAGE_UNPIN_CLEAN);
	}
	n->in_epoch[run->epoch] -= run->nr;
	n->failing = run->error;
	if (run->error) {
		writeback_error(n, run->error);
		n->retry_ms = io_now_ms() + RETRY_MS;
		if (!w->error)
			w->error = run->error;
	} else {
		atomic_fetch_add(&c->progress, run->nr);
	}
	dirty_group_settle(n, g);
	set_mtime(n);
	pthread_cond_broadcast(&n->cond);
	pthread_mutex_unlock(&n->lock);
	pthread_mutex_lock(&c->dirty_lock);
	n->users--;
	pthread_mutex_unlock(&c->dirty_lock);
	node_settle(n);
}

/* Everything out, and waited for. */
static void flush_writer(struct writer *w)
{
	struct foliage_cache *c = w->cache;
	struct io_request *list = NULL;

	if (!w->nr_runs)
		return;
	for (uint32_t i = w->nr_runs; i--;) {
		w->runs[i].request.next = list;
		list = &w->runs[i].request;
	}
	atomic_store(&w->pending, w->nr_runs);
	io_submit(&c->io, list);
	while (atomic_load_explicit(&w->pending, memory_order_acquire))
		io_wait(&c->io, 100);
	for (uint32_t i = 0; i < w->nr_runs; i++)
		finish_run(w, &w->runs[i]);
	w->nr_runs = w->used = 0;
	io_kick(&c->io);
}

/* ---- gathering ---- */

/* Copy up to nr pages; how many. Under node->lock. */
static uint32_t copy_pages(struct writer *w, struct file_node *n, uint64_t first, uint32_t nr)
{
	struct foliage_cache *c = n->cache;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		struct foliage_page *page;

		if (node_fetch(n, first + i, FILE_FETCH_INSIDE, &page))
			break; /* has 2048 pins */
		memcpy(w->memory + ((size_t)(w->used + i) << c->shift), page->data, c->page_bytes);
		w->pages[w->used + i] = page;
	}
	return i;
}

static void add_run(struct writer *w, struct file_node *n, uint64_t first, uint32_t nr)
{
	struct foliage_cache *c = n->cache;
	struct wb_run *run = &w->runs[w->nr_runs++];
	uint64_t at = first << c->shift, bytes = MIN((uint64_t)nr << c->shift, node_size(n) - at);

	*run = (struct wb_run){
		.request = {.op = IO_WRITE,
			    .fixed = true,
			    .file = node_write_fd(n),
			    .iov = &run->iov,
			    .nr_iov = 1,
			    .at = at,
			    .bytes = bytes,
			    .done = run_done},
		.iov = {w->memory + ((size_t)w->used << c->shift), bytes},
		.writer = w,
		.node = n,
		.first = first,
		.nr = nr,
		.page = w->used,
		.epoch = n->epoch & 1,
	};
	if (bytes & 511)
		run->request.file.direct = -1;
	w->used += nr;
	n->in_epoch[run->epoch] += nr;
	if (n->unsynced_first == NO_PAGE) {
		n->unsynced_first = first;
		n->unsynced_last = first + nr - 1;
	}
	n->unsynced_first = MIN(n->unsynced_first, first);
	n->unsynced_last = MAX(n->unsynced_last, first + nr - 1);
	pthread_mutex_lock(&c->dirty_lock);
	n->users++;
	pthread_mutex_unlock(&c->dirty_lock);
}

/* Runs of the group that nobody is writing; false: the writer is full. *skipped: something is left
 * for another reason. Under node->lock. */
static bool gather_group(struct writer *w, struct file_node *n, struct dirty_group *g,
			 bool *skipped)
{
	struct foliage_cache *c = n->cache;
	uint64_t bits = g->dirty & ~g->writeback;

	if (g->dirty & g->writeback)
		*skipped = true;
	while (bits) {
		uint32_t bit = (uint32_t)__builtin_ctzll(bits), nr, copied;
		uint64_t first = g->base * GROUP_PAGES + bit, ones = ~(bits >> bit);

		nr = ones ? (uint32_t)__builtin_ctzll(ones) : GROUP_PAGES;
		/* The incomplete last page goes alone: it does not suit O_DIRECT. */
		if (nr > 1 && (first + nr) << c->shift > node_size(n))
			nr--;
		nr = MIN(nr, w->max - w->used);
		if (!nr)
			return false;
		copied = copy_pages(w, n, first, nr);
		if (copied) {
			add_run(w, n, first, copied);
			dirty_to_writeback(n, g, bit, copied);
		}
		if (copied < nr)
			*skipped = true;
		/* Not those that were passed over, either. */
		nr = MAX(copied, 1u);
		bits &= ~((nr == GROUP_PAGES ? ~UINT64_C(0) : (UINT64_C(1) << nr) - 1) << bit);
	}
	return true;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Groups of a node, in the order of the file. `bases` is `few` when there is no memory for all. */
struct group_list {
	uint64_t *bases, few[FEW_GROUPS];
	size_t nr;
	bool more; /* than are here */
};

/* Those that are older than `cutoff`. */
static void list_groups(struct file_node *n, uint64_t cutoff, struct group_list *list)
{
	size_t room;

	list->nr = 0;
	list->more = false;
	pthread_mutex_lock(&n->lock);
	room = n->nr_groups;
	list->bases = room ? malloc(room * sizeof(*list->bases)) : NULL;
	if (!list->bases) {
		list->bases = list->few;
		room = MIN(room, (size_t)FEW_GROUPS);
	}
	for (struct dirty_group *g = n->oldest; g; g = g->next) {
		if (!g->dirty || g->since_ms > cutoff)
			continue;
		list->more = list->nr == room;
		if (list->more)
			break;
		list->bases[list->nr++] = g->base;
	}
	pthread_mutex_unlock(&n->lock);
	if (list->nr > 1)
		qsort(list->bases, list->nr, sizeof(*list->bases), by_number);
}

/* One pass over the node, or over so much of it as there is memory to list: false. When somebody keeps
 * write-back out: wait for the end of that, or not. */
static bool sweep(struct writer *w, struct file_node *n, uint64_t cutoff, bool wait, bool *skipped)
{
	struct group_list list;

	list_groups(n, cutoff, &list);
	for (size_t i = 0; i < list.nr;) {
		struct dirty_group *g;
		bool done = true;

		pthread_mutex_lock(&n->lock);
		if (n->hold) {
			/* It may be waiting for what we have gathered. */
			pthread_mutex_unlock(&n->lock);
			flush_writer(w);
			if (!wait)
				break;
			pthread_mutex_lock(&n->lock);
			while (n->hold)
				pthread_cond_wait(&n->cond, &n->lock);
		}
		g = dirty_find(n, list.bases[i]);
		if (g)
			done = gather_group(w, n, g, skipped);
		pthread_mutex_unlock(&n->lock);
		if (done)
			i++;
		else
			flush_writer(w);
	}
	if (list.bases != list.few)
		free(list.bases);
	return !list.more;
}

/* Under sync_lock. */
static int write_node(struct file_node *n)
{
	struct writer *w = get_writer(n->cache);
	bool skipped = true, whole = true;
	int rc;

	for (int i = 0; i < SWEEPS && (skipped || !whole); i++) {
		uint32_t before;

		skipped = false;
		whole = sweep(w, n, UINT64_MAX, true, &skipped);
		flush_writer(w);
		pthread_mutex_lock(&n->lock);
		before = n->epoch++ & 1;
		while (n->in_epoch[before])
			pthread_cond_wait(&n->cond, &n->lock);
		pthread_mutex_unlock(&n->lock);
		if (skipped && i > 2)
			file_wait_news(n->cache);
	}
	rc = w->error ? w->error : !whole ? -ENOMEM : skipped ? -EBUSY : 0;
	put_writer(w);
	return rc;
}

int writeback_node(struct file_node *n)
{
	int rc;

	pthread_mutex_lock(&n->sync_lock);
	rc = write_node(n);
	pthread_mutex_unlock(&n->sync_lock);
	return rc;
}

/* ---- fsync ---- */

/* The system's fsync failed: it may have dropped pages first .. last. As far as we have them, they
 * are dirty again. Under node->lock. */
static void dirty_again(struct file_node *n, uint64_t first, uint64_t last)
{
	struct foliage_cache *c = n->cache;
	uint64_t pages = cache_pages(c, node_size(n));

	for (uint64_t i = first; i <= last && i < pages; i++) {
		struct foliage_page *page;

		if (dirty_test(n, i) || node_fetch(n, i, FILE_FETCH_INSIDE, &page))
			continue;
		foliage_pool_unpin(c->pool, page, dirty_mark(n, i) ? FOLIAGE_UNPIN_DIRTY : 0);
	}
}

int writeback_sync(struct file_node *n, bool data_only)
{
	uint64_t first, last;
	struct io_file file;
	int rc, error;

	pthread_mutex_lock(&n->sync_lock);
	rc = write_node(n);
	pthread_mutex_lock(&n->lock);
	first = n->unsynced_first;
	last = n->unsynced_last;
	n->unsynced_first = NO_PAGE;
	pthread_mutex_unlock(&n->lock);
	file = node_write_fd(n).plain >= 0 ? node_write_fd(n) : node_read_fd(n);
	error = io_sync(&n->cache->io, file, data_only);
	if (error) {
		pthread_mutex_lock(&n->lock);
		writeback_error(n, error);
		if (first != NO_PAGE) {
			n->unsynced_last =
				n->unsynced_first == NO_PAGE ? last : MAX(n->unsynced_last, last);
			n->unsynced_first = MIN(n->unsynced_first, first);
			dirty_again(n, first, last);
		}
		pthread_mutex_unlock(&n->lock);
	}
	pthread_mutex_unlock(&n->sync_lock);
	return rc ? rc : error;
}

static int sync_file(struct foliage_file *f, bool data_only)
{
	int rc, told;

	if (!file_cache_alive(f->node->cache))
		return -ECHILD;
	rc = writeback_sync(f->node, data_only);
	told = writeback_report(f);
	return told ? told : rc;
}

int foliage_file_flush(struct foliage_file *f)
{
	return file_cache_alive(f->node->cache) ? writeback_node(f->node) : -ECHILD;
}

int foliage_file_fsync(struct foliage_file *f)
{
	return sync_file(f, false);
}

int foliage_file_fdatasync(struct foliage_file *f)
{
	return sync_file(f, true);
}

/* ---- the flusher ---- */

void writeback_kick(struct foliage_cache *c)
{
	if (atomic_exchange(&c->kicked, true))
		return;
	pthread_mutex_lock(&c->flusher_lock);
	pthread_cond_signal(&c->flusher_cond);
	pthread_mutex_unlock(&c->flusher_lock);
}

void writeback_fsync_later(struct foliage_aio *aio)
{
	struct foliage_cache *c = aio->file->node->cache;

	pthread_mutex_lock(&c->flusher_lock);
	aio_push(&c->fsyncs, aio);
	pthread_cond_signal(&c->flusher_cond);
	pthread_mutex_unlock(&c->flusher_lock);
}

/* The first dirty node that was not seen in this round, kept by `users`. */
static struct file_node *next_node(struct foliage_cache *c, uint64_t round)
{
	struct file_node *n;

	pthread_mutex_lock(&c->dirty_lock);
	for (n = c->dirty_first; n && n->round == round; n = n->dirty_next)
		;
	if (n) {
		n->round = round;
		n->users++;
	}
	pthread_mutex_unlock(&c->dirty_lock);
	return n;
}

static bool must_rest(struct file_node *n, uint64_t now)
{
	bool rest;

	pthread_mutex_lock(&n->lock);
	rest = n->failing && now < n->retry_ms;
	pthread_mutex_unlock(&n->lock);
	return rest;
}

/* What is too old, or too much. */
static void write_background(struct foliage_cache *c, uint64_t round)
{
	bool starving = atomic_exchange(&c->pool_starves, false), skipped;
	uint64_t now = io_now_ms(), expired = now > c->expire_ms ? now - c->expire_ms : 0;
	struct file_node *n;
	struct writer *w;

	if (!atomic_load(&c->nr_dirty))
		return;
	w = get_writer(c);
	while ((n = next_node(c, round))) {
		bool much = starving || atomic_load(&c->nr_dirty) > c->dirty_background;

		if (!must_rest(n, now))
			sweep(w, n, much ? UINT64_MAX : expired, false, &skipped);
		pthread_mutex_lock(&c->dirty_lock);
		n->users--;
		pthread_mutex_unlock(&c->dirty_lock);
	}
	flush_writer(w);
	put_writer(w);
}

/* Until there is something to do: true, or the end: false. */
static bool wait_for_work(struct foliage_cache *c, struct aio_queue *fsyncs)
{
	struct timespec until;
	bool go_on;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)(c->wake_ms / 1000);
	until.tv_nsec += (long)(c->wake_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&c->flusher_lock);
	while (!c->stop && !atomic_load(&c->kicked) && !c->fsyncs.first)
		if (pthread_cond_timedwait(&c->flusher_cond, &c->flusher_lock, &until))
			break;
	atomic_store(&c->kicked, false);
	*fsyncs = c->fsyncs;
	c->fsyncs = (struct aio_queue){0};
	go_on = !c->stop;
	pthread_mutex_unlock(&c->flusher_lock);
	return go_on;
}

static void *flusher(void *arg)
{
	struct foliage_cache *c = arg;
	struct aio_queue fsyncs;

	for (uint64_t round = 1; wait_for_work(c, &fsyncs); round++) {
		struct foliage_aio *aio;

		while ((aio = aio_pop(&fsyncs))) {
			bool all = aio->op == FOLIAGE_AIO_FSYNC ||
				   (aio->op == FOLIAGE_AIO_WRITE && aio->file->sync_all);
			int rc = sync_file(aio->file, !all);

			file_aio_complete(aio, rc ? rc : aio->result);
		}
		write_background(c, round);
		io_wait(&c->io, 0); /* what nobody else waits for */
	}
	return NULL;
}

/* ---- the cache's life ---- */

static struct writer *make_writer(struct foliage_cache *c, int i)
{
	struct writer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->cache = c;
	w->memory = c->fixed + (size_t)i * WRITER_BYTES;
	w->max = WRITER_BYTES >> c->shift;
	w->pages = calloc(w->max, sizeof(struct foliage_page *));
	w->runs = calloc(w->max, sizeof(*w->runs));
	w->next = c->free_writers;
	c->free_writers = c->writers[i] = w;
	return w->pages && w->runs ? w : NULL;
}

int writeback_init(struct foliage_cache *c)
{
	pthread_condattr_t monotonic;

	pthread_mutex_init(&c->writers_lock, NULL);
	pthread_cond_init(&c->writers_cond, NULL);
	pthread_mutex_init(&c->flusher_lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&c->flusher_cond, &monotonic);
	pthread_condattr_destroy(&monotonic);
	for (int i = 0; i < WRITERS; i++)
		if (!make_writer(c, i))
			return -ENOMEM;
	c->has_flusher = !pthread_create(&c->flusher, NULL, flusher, c);
	return c->has_flusher ? 0 : -EAGAIN;
}

void writeback_fini(struct foliage_cache *c)
{
	if (c->has_flusher && file_cache_alive(c)) {
		pthread_mutex_lock(&c->flusher_lock);
		c->stop = true;
		pthread_cond_signal(&c->flusher_cond);
		pthread_mutex_unlock(&c->flusher_lock);
		pthread_join(c->flusher, NULL);
	}
	for (int i = 0; i < WRITERS; i++) {
		if (!c->writers[i])
			continue;
		free(c->writers[i]->pages);
		free(c->writers[i]->runs);
		free(c->writers[i]);
	}
}
