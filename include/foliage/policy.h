/* SPDX-License-Identifier: MIT
 *
 * foliage/policy.h - for people who write a policy.
 *
 * A policy decides which pages of a full room stay. There are two ways to write one:
 *
 *   1. The reduced interface below: a fixed room, dense page ids, one access after another. FIFO,
 *      LRU, ARC, LIRS and the other reference policies are written so, and so is a policy loaded
 *      from a shared object (`foliage replay --policy ./mine.so`), which exports one symbol:
 *
 *          const struct foliage_policy foliage_policy = {
 *              .abi = FOLIAGE_POLICY_ABI, .name = "mine", .create = ..., .access = ...,
 *          };
 *
 *   2. An engine policy (`engine` set instead of `create`): CLRU, MGLRU and their kin, which rank
 *      folios for the whole engine. Those live in mm/ and are not loadable.
 *
 * Nouns
 *   room     how many pages fit, fixed for the life of a policy object.
 *   id       a page, numbered 0..nr_ids-1 in order of first appearance in the trace.
 *   access   one reference to one id; a hit if the page is in the room, else a miss that brings it
 *            in.
 *   refault  a miss of a page that has been in the room before.
 *   knob     a named, typed, bounded parameter: `fg:tail_mode=min,refs_max=15`.
 *
 * Thread-safety: a policy object is used by one thread at a time; several objects may run at once,
 * so a policy keeps no writable globals. Errors are negative errno values. A policy never prints
 * and never exits.
 */
#ifndef FOLIAGE_POLICY_H
#define FOLIAGE_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FOLIAGE_POLICY_ABI 1
#define FOLIAGE_ROOM_MIN   8          /* the smallest room, in pages */
#define FOLIAGE_NEVER      UINT64_MAX /* `next` of an access that is the last one of its id */

/* What kind of access (bits; 0 is a plain read). Reference policies may ignore them. */
enum {
	FOLIAGE_ACCESS_WRITE = 1 << 0,
	FOLIAGE_ACCESS_MAPPED = 1 << 1, /* through a page table: sets a young bit, marks nothing */
	FOLIAGE_ACCESS_EXEC = 1 << 2,   /* through an executable mapping */
};

enum foliage_knob_kind {
	FOLIAGE_KNOB_UINT,   /* uint32_t at `offset` */
	FOLIAGE_KNOB_DOUBLE, /* double */
	FOLIAGE_KNOB_BOOL,   /* uint32_t 0 or 1 */
	FOLIAGE_KNOB_ENUM,   /* uint32_t, index into `names` */
};

struct foliage_knob {
	const char *name, *summary;
	enum foliage_knob_kind kind;
	size_t offset; /* into the policy's knob structure */
	double def, min, max;
	const char *const *names; /* of an enum, NULL-terminated */
};

struct foliage_stats {
	uint64_t accesses, hits, misses;
	uint64_t refaults;        /* misses of pages that were here before */
	uint64_t scanned, stolen; /* by reclaim, in pages */
	uint64_t promoted;        /* moved to a younger generation or an active list */
	uint64_t protected_;      /* kept by tier feedback or a second chance */
	uint64_t agings;          /* generations opened */
};

/* One thing that happened to one folio, for `--events` and `foliage explain`. */
struct foliage_event {
	uint64_t access; /* index of the access during which it happened */
	uint32_t id;
	uint16_t what;    /* enum foliage_event_what */
	uint16_t why;     /* enum foliage_event_why: the rule that decided */
	int32_t from, to; /* generation (seq) or list before and after; -1: none */
	uint8_t refs_from, refs_to;
};

enum foliage_event_what {
	FOLIAGE_EV_ACCESS,  /* a hit was counted */
	FOLIAGE_EV_INSERT,  /* came into the room */
	FOLIAGE_EV_REFAULT, /* came back; what its shadow said is in refs_to */
	FOLIAGE_EV_ADD,     /* placed on a list */
	FOLIAGE_EV_MOVE,    /* changed generation */
	FOLIAGE_EV_SORT,    /* moved to the list of its generation by eviction */
	FOLIAGE_EV_KEEP,    /* looked at by reclaim and kept */
	FOLIAGE_EV_EVICT,   /* left the room */
	FOLIAGE_EV_AGE,     /* a generation was opened (id is not a page) */
	FOLIAGE_EV_NR,
};

enum foliage_event_why {
	FOLIAGE_WHY_NONE,
	FOLIAGE_WHY_FIRST,         /* first insertion */
	FOLIAGE_WHY_RECENT,        /* the shadow was recent */
	FOLIAGE_WHY_STALE,         /* the shadow was too old to count */
	FOLIAGE_WHY_COUNT,         /* only the counter moved */
	FOLIAGE_WHY_SATURATED,     /* the counter is full */
	FOLIAGE_WHY_OVERFLOW,      /* FG: counter overflow promotes (C.2 rule 4) */
	FOLIAGE_WHY_DEFER,         /* FG: touched at the tail (C.2 rule 5) */
	FOLIAGE_WHY_YOUNG,         /* page-table evidence (C.2 rule 3, B.2) */
	FOLIAGE_WHY_PROTECT,       /* tier above the protected one (B.4, C.5) */
	FOLIAGE_WHY_ZONE,          /* zone too high for this request */
	FOLIAGE_WHY_LAZY,          /* promoted earlier, list caught up now */
	FOLIAGE_WHY_FORCED_AGE,    /* oldest generation moved up by aging (B.8) */
	FOLIAGE_WHY_PLACE,         /* placement table (B.3, C.7) */
	FOLIAGE_WHY_ACTIVATE,      /* second access, or referenced at the tail (A.2, A.3) */
	FOLIAGE_WHY_DEACTIVATE,    /* active list shrunk (A.4) */
	FOLIAGE_WHY_REFERENCED,    /* one more trip round the inactive list */
	FOLIAGE_WHY_SECOND_CHANCE, /* refs left at the tail (FG-W, CLOCK and kin) */
	FOLIAGE_WHY_PROBATION,     /* FG-W: enters or leaves probation */
	FOLIAGE_WHY_DIRTY,         /* dirty or under write-back */
	FOLIAGE_WHY_PINNED,
	FOLIAGE_WHY_COLD, /* the victim */
	FOLIAGE_WHY_NR,
};

/* The world of one policy object. Pointers stay valid until destroy. */
struct foliage_policy_env {
	uint32_t room;        /* pages; at least FOLIAGE_ROOM_MIN */
	uint32_t nr_ids;      /* ids are 0..nr_ids-1 */
	uint64_t nr_accesses; /* how many will come, 0 if unknown */
	uint64_t seed;
	/* Only for FOLIAGE_POLICY_OFFLINE: */
	const uint64_t *next;   /* next[i]: index of the next access to the id of access i, or
				   FOLIAGE_NEVER */
	const uint32_t *counts; /* counts[id]: accesses in the whole trace */
	/* Optional, and only called while set: */
	void (*event)(void *ctx, const struct foliage_event *event);
	void *event_ctx;
	/* The size that the run stands for divided by `room`, at least 1: a scaled-down run must
	 * behave as the modelled size (scan budget, inactive ratio). */
	double scale;
	/* Only for mapped accesses: order[id] is the page's place in its address space, so that
	 * neighbours in the trace's numbering share page tables. NULL: ids are their own order. */
	const uint32_t *order;
	/* The part of the pages that run, when they are a sample of the modelled ones; 0 or 1: all.
	 * What counts pages and not parts of the room then stands for more of them. */
	double sample;
};

enum {
	FOLIAGE_POLICY_OFFLINE = 1 << 0, /* needs `next` or `counts`: looks at the future */
};

struct foliage_engine_policy; /* mm/policies.h */

struct foliage_policy {
	uint32_t abi; /* FOLIAGE_POLICY_ABI */
	uint32_t flags;
	const char *name, *summary;
	const struct foliage_knob *knobs; /* ends with a NULL name; NULL: none */
	size_t knobs_size;
	const char *preset; /* knob settings over the defaults, "a=1,b=2"; for variants */

	/* The reduced interface. */
	int (*create)(const struct foliage_policy_env *env, const void *knobs, void **state);
	void (*destroy)(void *state);
	/* One access; returns true on a hit. `now` counts accesses from 0. The caller counts
	 * accesses, hits, misses and refaults. Unless `run` is set. */
	bool (*access)(void *state, uint32_t id, uint64_t now);
	/* Or a whole run of them, counted by the policy itself: returns 0 or a negative errno.
	 * `ops` is NULL when every access is a plain read. */
	int (*run)(void *state, const uint32_t *ids, const uint8_t *ops, size_t n, uint64_t now);
	/* Adds to *stats what the policy itself counts (with `access`: scanned and the like).
	 * Optional. */
	void (*stats)(const void *state, struct foliage_stats *stats);

	const struct foliage_engine_policy *engine; /* or an engine policy */
};

#ifdef __cplusplus
}
#endif
#endif
