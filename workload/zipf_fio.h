/* SPDX-License-Identifier: MIT
 *
 * fio's random offsets under `random_distribution=zipf:theta`, bit for bit (fio 3.33). The
 * published read() and mmap numbers were made with them, and their hash from rank to block leaves
 * part of a file unread for ever, so that a plain zipf over a permutation would not do.
 */
#ifndef FOLIAGE_WORKLOAD_ZIPF_FIO_H
#define FOLIAGE_WORKLOAD_ZIPF_FIO_H

#include <stddef.h>
#include <stdint.h>

/* What depends on the number of blocks and theta only; one serves any number of jobs. */
struct zipf_fio_dist {
	uint64_t n;
	double theta, zetan, alpha, eta, second; /* second: below it (times zetan) the rank is 2 */
};

/* -EINVAL: no block, or a theta that is not positive or is 1. Sums up to ten million terms. */
int zipf_fio_dist_init(struct zipf_fio_dist *dist, uint64_t n, double theta);

/* One job reading one file. */
struct zipf_fio {
	const struct zipf_fio_dist *dist;
	uint32_t s1, s2, s3;
	uint64_t off;
};

/* `file` as the job was given it; jobs are numbered from 1. */
void zipf_fio_init(struct zipf_fio *job, const struct zipf_fio_dist *dist, const char *file,
		   uint32_t job_nr);
/* The next block number, 0..n-1. */
uint64_t zipf_fio_next(struct zipf_fio *job);
void zipf_fio_fill(struct zipf_fio *job, uint32_t *blocks, size_t nr);

/* The probability of each block, before the rotation; `p` has dist->n. */
void zipf_fio_probabilities(const struct zipf_fio_dist *dist, double *p);
/* Of `nr` draws that follow `before` others: how many are expected to be the first of their block. */
double zipf_fio_first_reads(const double *p, uint64_t n, double before, double nr);

/* The generator's parts, for its tests. */
uint32_t zipf_fio_hash_name(const char *name, size_t length);
uint32_t zipf_fio_taus88(struct zipf_fio *job);

#endif
