/* SPDX-License-Identifier: MIT
 *
 * The recorder's end of the ring that preloaded programs fill (ring.h).
 *
 * Who dies between reserving a slot and completing it leaves a hole. The reader waits at it, and
 * goes on behind it when nothing has come for a second: it counts as lost.
 */
#include "adapters/record/ring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "adapters/record/source.h"
#include "base/bits.h"
#include "trace/names.h"

enum { RING_BYTES = 32 << 20, KEYS = 4096, HOLE_SECONDS = 1, POLL_MAX = 1 << 16 };

struct known {
	struct ring_key key;
	uint32_t id; /* 0: nothing here */
};

struct ring_source {
	struct source source;
	struct ring *ring;
	size_t bytes;
	int fd;
	uint64_t events, holes;
	time_t waiting; /* at a hole since then; 0: not */
	struct names keys;
	struct known known[KEYS]; /* in front of keys */
};

static uint32_t slots_for(uint64_t wanted)
{
	uint32_t slots = 1024;

	while (slots < (wanted ? wanted : RING_BYTES) / sizeof(struct ring_slot) &&
	       slots < (1u << 24))
		slots <<= 1;
	return slots;
}

static void key_text(const struct ring_key *key, char *text, size_t bytes)
{
	snprintf(text, bytes, "%x:%llx:%x", key->device, (unsigned long long)key->inode,
		 key->birth);
}

/* The id of a file; 0: no memory. */
static uint32_t file_id(struct ring_source *s, const struct ring_key *key)
{
	struct known *k = &s->known[(key->inode ^ key->birth ^ key->device) % KEYS];
	char text[64];
	uint32_t id;

	if (k->id && !memcmp(&k->key, key, sizeof(*key)))
		return k->id;
	key_text(key, text, sizeof(text));
	if (names_intern(&s->keys, text, strlen(text), &id))
		return 0;
	*k = (struct known){.key = *key, .id = id};
	return id;
}

static void copy_text(struct ring *ring, uint64_t at, size_t bytes, char *text)
{
	for (size_t done = 0, i = 1; done < bytes; i++) {
		size_t n = MIN(bytes - done, (size_t)RING_SLOT_TEXT);

		memcpy(text + done, ring_slot(ring, at + i)->text, n);
		done += n;
	}
	text[bytes] = 0;
}

static int take_event(struct ring_source *s, struct recording *recording, uint64_t at,
		      const struct ring_slot *slot)
{
	char text[RING_NAME_MAX + 1];
	uint32_t id = 0;

	if (slot->kind == RING_ACCESS || slot->kind == RING_FILE) {
		id = file_id(s, &slot->key);
		if (!id)
			return -ENOMEM;
	}
	if (slot->kind == RING_ACCESS) {
		if (slot->op >= TRACE_NR_OPS)
			return 0;
		s->events++;
		return recording_access(recording, (enum trace_op)slot->op, id, slot->pid,
					slot->first, slot->last);
	}
	copy_text(s->ring, at, MIN(slot->bytes, RING_NAME_MAX), text);
	if (slot->kind == RING_FILE)
		return recording_file(recording, id, NULL, text);
	return recording_process(recording, slot->pid, slot->pid, text);
}

/* Whether the slot at the tail, reserved and not complete, is given up. */
static bool is_hole(struct ring_source *s)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!s->waiting)
		s->waiting = now.tv_sec;
	return now.tv_sec - s->waiting > HOLE_SECONDS;
}

static ssize_t ring_poll(struct source *source, struct recording *recording, struct err *err)
{
	struct ring_source *s = (struct ring_source *)source;
	struct ring *ring = s->ring;
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	ssize_t n = 0;

	while (n < POLL_MAX && tail != atomic_load_explicit(&ring->head, memory_order_relaxed)) {
		const struct ring_slot *slot = ring_slot(ring, tail);
		uint32_t slots = 1;
		int code = 0;

		if (atomic_load_explicit(&slot->turn, memory_order_acquire) == tail + 1) {
			s->waiting = 0;
			slots = ring_slots_of(slot->bytes);
			code = take_event(s, recording, tail, slot);
		} else if (is_hole(s)) {
			s->holes++;
		} else {
			return n + 1; /* something is to come */
		}
		if (code)
			return err_set(err, code, "recording: %s", strerror(-code));
		tail += slots;
		atomic_store_explicit(&ring->tail, tail, memory_order_release);
		n++;
	}
	return n;
}

static void ring_load(struct source *source, struct source_load *load)
{
	struct ring_source *s = (struct ring_source *)source;

	*load = (struct source_load){
		.events = s->events,
		.lost = atomic_load(&s->ring->lost) + s->holes,
		.silent = !atomic_load(&s->ring->programs),
	};
}

static void ring_close(struct source *source)
{
	struct ring_source *s = (struct ring_source *)source;

	if (s->ring) {
		atomic_store(&s->ring->stopped, 1);
		munmap(s->ring, s->bytes);
	}
	if (s->fd >= 0)
		close(s->fd);
	names_free(&s->keys);
	free(s);
}

static const struct source_ops ring_ops = {
	.poll = ring_poll,
	.load = ring_load,
	.close = ring_close,
};

static int map_ring(struct ring_source *s, const struct source_options *options)
{
	uint32_t slots = slots_for(options->buffer);
	struct ring *ring;

	s->bytes = sizeof(*ring) + slots * sizeof(struct ring_slot);
	s->fd = memfd_create("foliage-record", MFD_CLOEXEC);
	if (s->fd < 0 || ftruncate(s->fd, (off_t)s->bytes))
		return -errno;
	ring = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (ring == MAP_FAILED)
		return -errno;
	ring->magic = RING_MAGIC;
	ring->version = RING_VERSION;
	ring->slots = slots;
	ring->recorder = (int32_t)getpid();
	ring->min_size = options->min_size;
	ring->no_writes = options->writes == RECORD_WRITES_NO;
	s->ring = ring;
	return 0;
}

int source_ring_open(const struct source_options *options, struct source **source,
		     char *environment, size_t bytes, struct err *err)
{
	struct ring_source *s = calloc(1, sizeof(*s));
	int code;

	if (!s)
		return err_set(err, -ENOMEM, "no memory");
	s->source.ops = &ring_ops;
	s->fd = -1;
	code = map_ring(s, options);
	if (code) {
		ring_close(&s->source);
		return err_set(err, code, "shared memory for events: %s", strerror(-code));
	}
	snprintf(environment, bytes, "%s=/proc/%d/fd/%d", RING_VARIABLE, (int)getpid(), s->fd);
	*source = &s->source;
	return 0;
}
