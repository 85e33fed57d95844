/* SPDX-License-Identifier: MIT
 *
 * The nearest known word to a misspelt one, for messages that end in "did you mean ...?".
 *
 * Edit distance (insertions, deletions, replacements and swaps of neighbours, each costing one),
 * with case ignored. A candidate is worth suggesting when at most a third of the longer word
 * differs, or when the user wrote the beginning of it.
 */
#ifndef FOLIAGE_BASE_NEAREST_H
#define FOLIAGE_BASE_NEAREST_H

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/bits.h"

struct nearest {
	const char *word; /* what the user wrote */
	const char *best; /* the nearest candidate so far; NULL: none is near enough to suggest */
	unsigned int distance;
};

enum { NEAREST_WORD_MAX = 48 };

static inline unsigned int nearest_distance(const char *a, size_t len_a, const char *b,
					    size_t len_b)
{
	unsigned int rows[3][NEAREST_WORD_MAX + 1];
	unsigned int *before = rows[0], *last = rows[1], *row = rows[2];

	for (unsigned int j = 0; j <= len_b; j++)
		last[j] = j;
	for (unsigned int i = 1; i <= len_a; i++) {
		int ca = tolower((unsigned char)a[i - 1]);
		unsigned int *oldest = before;

		row[0] = i;
		for (unsigned int j = 1; j <= len_b; j++) {
			int cb = tolower((unsigned char)b[j - 1]);

			row[j] = MIN(MIN(last[j], row[j - 1]) + 1, last[j - 1] + (ca != cb));
			if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) &&
			    cb == tolower((unsigned char)a[i - 2]))
				row[j] = MIN(row[j], before[j - 2] + 1);
		}
		before = last;
		last = row;
		row = oldest;
	}
	return last[len_b];
}

static inline void nearest_start(struct nearest *nearest, const char *word)
{
	*nearest = (struct nearest){.word = word};
}

static inline void nearest_try(struct nearest *nearest, const char *candidate)
{
	size_t len = strlen(nearest->word), len_c = strlen(candidate);
	unsigned int distance;

	if (!len || len > NEAREST_WORD_MAX || len_c > NEAREST_WORD_MAX)
		return;
	distance = nearest_distance(nearest->word, len, candidate, len_c);
	if (distance > (MAX(len, len_c) + 2) / 3) {
		if (len < 2 || strncasecmp(nearest->word, candidate, len) != 0)
			return;
	}
	if (!nearest->best || distance < nearest->distance) {
		nearest->best = candidate;
		nearest->distance = distance;
	}
}

#endif
