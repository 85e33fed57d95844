/* SPDX-License-Identifier: MIT
 *
 * The published fio run: 16 jobs, each reading its own 2560 MiB file at zipf-distributed offsets,
 * share 16 GiB of page cache. Files are alike and jobs keep pace, so one job in a sixteenth of the
 * room behaves as all of them do in all of it, provided that what depends on the size of memory
 * still sees the whole (the environment's `scale`).
 *
 * Time enters in one place: the kernel's classic LRU decides on statistics that are flushed every
 * two seconds, which is so many reads at the published rate. A policy with knobs for that gets them
 * set, unless its text sets them.
 *
 * The number of reads is the published rate times the published time. Every policy gets its own
 * number: a faster one reads more in 600 seconds. The sequence is made once a theta and fed to all
 * of them, piece by piece.
 */
#include "workload/fio_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "machine/room.h"

enum { CHUNK = 1 << 17 };

const double fio_read_thetas[FIO_READ_NR_THETAS] = {0.8, 0.9, 1.1, 1.2};

void fio_read_case(double theta, char *text, size_t size)
{
	snprintf(text, size, "16G/%g", theta);
}

/* fio numbers the copies of a job that `numjobs` makes backwards: the first is 1, the second is
 * the last. Names are fio's own, job name, copy and file. */
void fio_read_job(struct zipf_fio *job, const struct zipf_fio_dist *dist, unsigned int number)
{
	char name[32];

	snprintf(name, sizeof(name), "read.%u.0", number);
	zipf_fio_init(job, dist, name, number ? FIO_READ_JOBS + 1 - number : 1);
}

int fio_read_plan(const struct published *p, double theta, unsigned int nr_jobs,
		  struct fio_read_cell *cell)
{
	char name[32];
	double iops;

	fio_read_case(theta, name, sizeof(name));
	if (!published_find(p, "fio-read", name, "iops", cell->policy->policy->name, &iops) &&
	    !published_find(p, "fio-read", name, "iops", "clru", &iops))
		return -ENOENT;
	iops *= (double)nr_jobs / FIO_READ_JOBS;
	cell->ramp = (uint64_t)(iops * FIO_READ_RAMP);
	cell->total = (uint64_t)(iops * (FIO_READ_RAMP + FIO_READ_SECONDS));
	cell->flush = (uint64_t)(iops * FIO_READ_FLUSH);
	return 0;
}

int fio_read_fit(const struct published *p, struct iops_model *model)
{
	double refaults[FIO_READ_NR_THETAS], iops[FIO_READ_NR_THETAS];

	for (size_t i = 0; i < FIO_READ_NR_THETAS; i++) {
		char name[32];

		fio_read_case(fio_read_thetas[i], name, sizeof(name));
		if (!published_find(p, "fio-read", name, "refault_per_read", "clru",
				    &refaults[i]) ||
		    !published_find(p, "fio-read", name, "iops", "clru", &iops[i]))
			return -ENOENT;
	}
	return iops_model_fit(model, refaults, iops, FIO_READ_NR_THETAS);
}

/* ---- running ---- */

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int feed(struct fio_read_cell *cell, const uint32_t *ids, uint64_t nr)
{
	const double start = cpu_seconds();
	int r = 0;

	nr = MIN(nr, cell->total - cell->done);
	if (cell->done < cell->ramp && cell->done + nr >= cell->ramp) {
		const uint64_t head = cell->ramp - cell->done;

		r = room_run(cell->room, ids, NULL, head);
		room_stats_reset(cell->room);
		cell->done += head;
		ids += head;
		nr -= head;
	}
	if (!r && nr)
		r = room_run(cell->room, ids, NULL, nr);
	cell->done += nr;
	cell->seconds += cpu_seconds() - start;
	return r;
}

/* The next piece of all jobs' reads, one of each in turn; every file has its own range of pages. */
static void make_chunk(struct zipf_fio *jobs, unsigned int nr_jobs, uint32_t *ids)
{
	for (size_t i = 0; i < CHUNK; i += nr_jobs) {
		for (unsigned int j = 0; j < nr_jobs; j++)
			ids[i + j] = j * FIO_READ_BLOCKS + (uint32_t)zipf_fio_next(&jobs[j]);
	}
}

static int read_all(struct zipf_fio *jobs, unsigned int nr_jobs, uint32_t *ids,
		    struct fio_read_cell *cells, size_t nr, bool (*stopped)(void))
{
	uint64_t longest = 0;

	for (size_t i = 0; i < nr; i++)
		longest = MAX(longest, cells[i].total);
	for (uint64_t done = 0; done < longest; done += CHUNK) {
		if (stopped && stopped())
			return -EINTR;
		make_chunk(jobs, nr_jobs, ids);
		for (size_t i = 0; i < nr; i++) {
			int r = feed(&cells[i], ids, CHUNK);

			if (r)
				return r;
		}
	}
	return 0;
}

static bool has_knob(const struct foliage_policy *policy, const char *name)
{
	for (const struct foliage_knob *k = policy->knobs; k && k->name; k++) {
		if (!strcmp(k->name, name))
			return true;
	}
	return false;
}

/* The policy of a cell with its statistics flushed in time. The knobs are a copy. */
static int set_time(struct fio_read_cell *cell, struct err *err)
{
	const struct policy_choice *choice = cell->policy;
	char text[64];

	cell->timed = *choice;
	if (!has_knob(choice->policy, "frozen") || !has_knob(choice->policy, "flush_every") ||
	    strstr(choice->label, "frozen=") || strstr(choice->label, "flush_every="))
		return 0;
	cell->timed.knobs = malloc(choice->policy->knobs_size);
	if (!cell->timed.knobs)
		return err_set(err, -ENOMEM, "out of memory");
	memcpy(cell->timed.knobs, choice->knobs, choice->policy->knobs_size);
	snprintf(text, sizeof(text), "frozen=1,flush_every=%llu", (unsigned long long)cell->flush);
	return policy_knobs_parse(choice->policy, cell->timed.knobs, text, err);
}

static void unset_time(struct fio_read_cell *cell)
{
	if (cell->timed.knobs != cell->policy->knobs)
		free(cell->timed.knobs);
	cell->timed = (struct policy_choice){0};
}

static int open_rooms(unsigned int nr_jobs, struct fio_read_cell *cells, size_t nr, struct err *err)
{
	for (size_t i = 0; i < nr; i++) {
		const struct foliage_policy_env env = {
			.room = FIO_READ_ROOM / FIO_READ_JOBS * nr_jobs,
			.nr_ids = FIO_READ_BLOCKS * nr_jobs,
			.nr_accesses = cells[i].total,
			.seed = 1,
			.scale = (double)FIO_READ_JOBS / nr_jobs,
		};
		int r = set_time(&cells[i], err);

		if (!r)
			r = room_open(&cells[i].timed, &env, &cells[i].room, err);
		if (r)
			return r;
	}
	return 0;
}

static void close_rooms(struct fio_read_cell *cells, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		struct foliage_stats stats;

		if (cells[i].room && cells[i].done > cells[i].ramp) {
			room_stats(cells[i].room, &stats);
			cells[i].accesses = cells[i].done - cells[i].ramp;
			cells[i].refaults = stats.refaults;
		}
		if (cells[i].room)
			room_close(cells[i].room);
		cells[i].room = NULL;
		if (cells[i].timed.policy)
			unset_time(&cells[i]);
	}
}

int fio_read_run(double theta, unsigned int first_job, unsigned int nr_jobs,
		 struct fio_read_cell *cells, size_t nr, bool (*stopped)(void), struct err *err)
{
	struct zipf_fio jobs[FIO_READ_JOBS];
	struct zipf_fio_dist dist;
	uint32_t *ids;
	int r = zipf_fio_dist_init(&dist, FIO_READ_BLOCKS, theta);

	if (r)
		return err_set(err, r, "theta %g: fio has no such distribution", theta);
	ids = malloc(CHUNK * sizeof(*ids));
	if (!ids)
		return err_set(err, -ENOMEM, "out of memory");
	for (unsigned int j = 0; j < nr_jobs; j++)
		fio_read_job(&jobs[j], &dist, (first_job + j) % FIO_READ_JOBS);
	r = open_rooms(nr_jobs, cells, nr, err);
	if (!r)
		r = read_all(jobs, nr_jobs, ids, cells, nr, stopped);
	close_rooms(cells, nr);
	free(ids);
	return r;
}
