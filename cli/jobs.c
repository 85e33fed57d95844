/* SPDX-License-Identifier: MIT
 *
 * A shared counter hands out the jobs. With one thread everything happens in the caller's. A thread
 * that cannot be started is one fewer, not an error: the caller's own always works.
 */
#include "cli/jobs.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bits.h"
#include "cli/cli.h"

struct crew {
	const struct jobs *jobs;
	pthread_mutex_t lock; /* of what follows */
	size_t next, done;
	size_t failed; /* lowest number that failed */
	int error;
};

static bool take(struct crew *crew, size_t *job)
{
	bool got;

	pthread_mutex_lock(&crew->lock);
	got = crew->next < crew->jobs->nr && !crew->error && !cli_interrupted;
	if (got)
		*job = crew->next++;
	pthread_mutex_unlock(&crew->lock);
	return got;
}

static void *work(void *arg)
{
	struct crew *crew = arg;
	size_t job;

	while (take(crew, &job)) {
		int r = crew->jobs->run(crew->jobs->ctx, job);

		pthread_mutex_lock(&crew->lock);
		crew->done++;
		if (r < 0 && (!crew->error || job < crew->failed)) {
			crew->error = r;
			crew->failed = job;
		}
		if (crew->jobs->finished)
			crew->jobs->finished(crew->jobs->ctx, crew->done);
		pthread_mutex_unlock(&crew->lock);
	}
	return NULL;
}

static size_t helpers_wanted(const struct jobs *jobs)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	size_t threads = jobs->threads ? jobs->threads : online > 0 ? (size_t)online : 1;

	return MIN(threads, MAX(jobs->nr, 1u)) - 1;
}

int jobs_run(const struct jobs *jobs)
{
	struct crew crew = {.jobs = jobs};
	size_t wanted = helpers_wanted(jobs), started = 0;
	pthread_t *helpers = wanted ? calloc(wanted, sizeof(*helpers)) : NULL;

	pthread_mutex_init(&crew.lock, NULL);
	while (helpers && started < wanted && !pthread_create(&helpers[started], NULL, work, &crew))
		started++;
	work(&crew);
	for (size_t i = 0; i < started; i++)
		pthread_join(helpers[i], NULL);
	pthread_mutex_destroy(&crew.lock);
	free(helpers);
	return crew.error;
}
