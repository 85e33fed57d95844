/* SPDX-License-Identifier: MIT
 *
 * Generations of different memcgs move on their own: they are put together by their distance from
 * the youngest, and numbered as the root's.
 */
#include "mm/ages.h"

#include <string.h>

#include "mm/gen.h"

static void add_generations(struct foliage_engine *e, struct lruvec *lv, unsigned int type,
			    uint64_t by_age[MAX_NR_GENS])
{
	uint64_t max_seq = gen_max_seq(lv), min_seq = gen_min_seq(lv, type);

	for (uint64_t age = 0; age < MAX_NR_GENS && min_seq + age <= max_seq; age++) {
		for (unsigned int zone = 0; zone < e->nr_zones; zone++)
			by_age[age] +=
				counter_size(&lv->gen.nr_pages[gen_of(max_seq - age)][type][zone]);
	}
}

static void set_generations(struct foliage_engine *e, unsigned int type,
			    const uint64_t by_age[MAX_NR_GENS], struct engine_ages *ages)
{
	unsigned int oldest = MIN(gen_nr(&e->lruvecs[0], type), (unsigned int)MAX_NR_GENS) - 1;

	for (unsigned int age = 0; age < MAX_NR_GENS; age++)
		oldest = by_age[age] && age > oldest ? age : oldest;
	ages->max_seq = gen_max_seq(&e->lruvecs[0]);
	ages->min_seq = ages->max_seq - MIN((uint64_t)oldest, ages->max_seq);
	ages->nr = oldest + 1;
	for (unsigned int age = 0; age <= oldest; age++)
		ages->pages[oldest - age] = by_age[age];
}

void engine_ages(struct foliage_engine *e, unsigned int type, struct engine_ages *ages)
{
	uint64_t by_age[MAX_NR_GENS] = {0}, total = 0, active = 0;

	memset(ages, 0, sizeof(*ages));
	ages->generations = e->ops->rules != NULL;
	for (uint32_t i = 0; i < e->nr_memcgs * e->nr_nodes; i++) {
		struct lruvec *lv = &e->lruvecs[i];

		if (!atomic_load(&e->memcgs[lv->memcg].used) || atomic_load(&lv->dying))
			continue;
		if (ages->generations) {
			add_generations(e, lv, type, by_age);
			continue;
		}
		total += e->ops->size(e, lv, type);
		active += e->ops->active(e, lv, type);
	}
	if (ages->generations) {
		set_generations(e, type, by_age, ages);
		return;
	}
	ages->nr = 2;
	ages->pages[0] = total > active ? total - active : 0;
	ages->pages[1] = active;
}
