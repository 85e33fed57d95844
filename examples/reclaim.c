/* SPDX-License-Identifier: MIT
 *
 * A tiny pager: a file of 1000 pages, memory for 100 of them, and the engine to say which. This is
 * all that a user of foliage/reclaim.h has to write.
 *
 *	cc -o reclaim examples/reclaim.c $(pkg-config --cflags --libs foliage) -lm && ./reclaim fg
 */
#include <foliage/reclaim.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAGES = 1000, ROOM = 100, ACCESSES = 200000 };

struct pager {
	uint64_t shadow[PAGES]; /* what the engine left when the page went; it wants it back */
	unsigned int resident;
};

/* The engine chose a page to go. A pager of real memory would free its frame here. */
static void evict(void *ctx, foliage_folio page, uint64_t shadow)
{
	struct pager *pager = ctx;

	pager->shadow[page] = shadow;
	pager->resident--;
}

/* Zipf-like: page k is used about k^-1 as often as page 1. */
static foliage_folio next_page(void)
{
	return (foliage_folio)pow(PAGES, rand() / (RAND_MAX + 1.0)) - 1;
}

int main(int argc, char **argv)
{
	static struct pager pager;
	const struct foliage_backend backend = {.evict = evict};
	const struct foliage_engine_options options = {.policy = argc > 1 ? argv[1] : "fg",
						       .nr_folios = PAGES,
						       .exclusive = true,
						       .backend = &backend,
						       .ctx = &pager};
	/* In so small a room, batches must be small as well: a sixteenth of it. */
	const struct foliage_reclaim_request room = {
		.nr = ROOM / 16, .batch = ROOM / 16, .memcg_limit = true};
	struct foliage_cpu cpu = {.batch = ROOM / 16};
	struct foliage_engine *engine;
	unsigned int hits = 0;
	char message[128], *text = NULL;

	if (foliage_engine_create(&options, &engine, message, sizeof(message))) {
		fprintf(stderr, "%s\n", message);
		return 1;
	}
	for (int i = 0; i < ACCESSES; i++) {
		foliage_folio page = next_page();

		if (foliage_folio_present(engine, page)) {
			hits++;
		} else {
			if (pager.resident == ROOM && foliage_reclaim(engine, &cpu, &room) <= 0)
				return 1;
			if (foliage_folio_add(engine, &cpu, page, 0, 0, 0, 0, 0,
					      pager.shadow[page]))
				return 1;
			pager.resident++;
		}
		foliage_folio_mark_accessed(engine, &cpu, page);
	}
	printf("hit ratio %.3f, %u pages resident\n", (double)hits / ACCESSES, pager.resident);
	if (foliage_text(engine, "lru_gen", &text) == 0)
		fputs(text, stdout);
	free(text);
	foliage_engine_destroy(engine);
	return 0;
}
