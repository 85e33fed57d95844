/* SPDX-License-Identifier: MIT
 *
 * fio's zipf offsets. A job's seed is the hash of its file's name times its number; the first
 * output of its Tausworthe generator rotates the file, every later one is a rank by Gray's
 * approximation (1994) of the zipf distribution, and a multiplicative hash scatters the ranks over
 * the blocks.
 *
 * The hash is one-to-one modulo 2^64 but not modulo n: unless n is a power of two some ranks share
 * a block and some blocks are never read (5.9 % of a 2560 MiB file).
 */
#include "workload/zipf_fio.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define ZETA_TERMS_MAX UINT64_C(10000000) /* fio stops its sum here, whatever n */
#define GOLDEN_64      UINT64_C(0x61C8864680B583EB)
#define GOLDEN_32      0x61C88647u

int zipf_fio_dist_init(struct zipf_fio_dist *dist, uint64_t n, double theta)
{
	const uint64_t terms = n < ZETA_TERMS_MAX ? n : ZETA_TERMS_MAX;
	double zeta2;

	if (!n || !(theta > 0) || theta == 1.0 || !isfinite(theta))
		return -EINVAL;
	dist->n = n;
	dist->theta = theta;
	dist->zetan = 0;
	for (uint64_t i = 1; i <= terms; i++)
		dist->zetan += pow(1.0 / (double)i, theta);
	zeta2 = 1.0 + pow(0.5, theta);
	dist->alpha = 1.0 / (1.0 - theta);
	dist->eta = (1.0 - pow(2.0 / (double)n, 1.0 - theta)) / (1.0 - zeta2 / dist->zetan);
	dist->second = 1.0 + pow(0.5, theta);
	return 0;
}

static uint32_t rol32(uint32_t x, unsigned int by)
{
	return x << by | x >> (32 - by);
}

/* Bob Jenkins' lookup3 for strings, with fio's quirk: a full block adds one byte to each of the
 * three words where the original adds four. */
uint32_t zipf_fio_hash_name(const char *name, size_t length)
{
	const unsigned char *k = (const unsigned char *)name;
	uint32_t a = GOLDEN_32 + (uint32_t)length, b = a, c = a;

	for (; length > 12; length -= 12, k += 12) {
		a += k[0];
		b += k[4];
		c += k[8];
		a -= c, a ^= rol32(c, 4), c += b;
		b -= a, b ^= rol32(a, 6), a += c;
		c -= b, c ^= rol32(b, 8), b += a;
		a -= c, a ^= rol32(c, 16), c += b;
		b -= a, b ^= rol32(a, 19), a += c;
		c -= b, c ^= rol32(b, 4), b += a;
	}
	if (!length)
		return c;
	for (size_t i = 0; i < length; i++) {
		uint32_t *word = i < 4 ? &a : i < 8 ? &b : &c;

		*word += (uint32_t)k[i] << (8 * (i % 4));
	}
	c ^= b, c -= rol32(b, 14);
	a ^= c, a -= rol32(c, 11);
	b ^= a, b -= rol32(a, 25);
	c ^= b, c -= rol32(b, 16);
	a ^= c, a -= rol32(c, 4);
	b ^= a, b -= rol32(a, 14);
	c ^= b, c -= rol32(b, 24);
	return c;
}

uint32_t zipf_fio_taus88(struct zipf_fio *job)
{
	job->s1 = (job->s1 & 0xFFFFFFFEu) << 12 ^ (job->s1 << 13 ^ job->s1) >> 19;
	job->s2 = (job->s2 & 0xFFFFFFF8u) << 4 ^ (job->s2 << 2 ^ job->s2) >> 25;
	job->s3 = (job->s3 & 0xFFFFFFF0u) << 17 ^ (job->s3 << 3 ^ job->s3) >> 11;
	return job->s1 ^ job->s2 ^ job->s3;
}

void zipf_fio_init(struct zipf_fio *job, const struct zipf_fio_dist *dist, const char *file,
		   uint32_t job_nr)
{
	const uint32_t seed = zipf_fio_hash_name(file, strlen(file)) * job_nr;
	const uint32_t lcg = 69069;

	job->dist = dist;
	/* Each component has a smallest legal state. */
	job->s1 = (53 * lcg) ^ seed;
	job->s2 = (job->s1 * lcg) ^ seed;
	job->s3 = (job->s2 * lcg) ^ seed;
	job->s1 += job->s1 < 1 ? 1 : 0;
	job->s2 += job->s2 < 7 ? 7 : 0;
	job->s3 += job->s3 < 15 ? 15 : 0;
	for (int i = 0; i < 6; i++)
		zipf_fio_taus88(job);
	job->off = zipf_fio_taus88(job);
}

uint64_t zipf_fio_next(struct zipf_fio *job)
{
	const struct zipf_fio_dist *d = job->dist;
	const double u = (double)zipf_fio_taus88(job) / 4294967295.0;
	const double z = u * d->zetan;
	uint64_t rank;

	if (z < 1.0)
		rank = 1;
	else if (z < d->second)
		rank = 2;
	else
		rank = 1 + (uint64_t)((double)d->n * pow(d->eta * u - d->eta + 1.0, d->alpha));
	return ((rank - 1) * GOLDEN_64 + job->off) % d->n;
}

void zipf_fio_fill(struct zipf_fio *job, uint32_t *blocks, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		blocks[i] = (uint32_t)zipf_fio_next(job);
}

void zipf_fio_probabilities(const struct zipf_fio_dist *d, double *p)
{
	double below = d->second / d->zetan;

	memset(p, 0, d->n * sizeof(*p));
	p[0] = 1.0 / d->zetan;
	p[GOLDEN_64 % d->n] += below - p[0];
	for (uint64_t rank = 0; rank < d->n; rank++) {
		/* The u from which on the rank is above this one. */
		double x = pow((double)(rank + 1) / (double)d->n, 1.0 / d->alpha);
		double u = fmin((x - 1.0 + d->eta) / d->eta, 1.0);

		if (u <= below)
			continue;
		p[rank * GOLDEN_64 % d->n] += u - below;
		below = u;
	}
}

double zipf_fio_first_reads(const double *p, uint64_t n, double before, double nr)
{
	double sum = 0;

	for (uint64_t i = 0; i < n; i++)
		sum -= exp(-p[i] * before) * expm1(-p[i] * nr);
	return sum;
}
