/* SPDX-License-Identifier: MIT
 *
 * The published read() table: the rate model on the published refaults, and the engine at theta
 * 0.8, whose run is the shortest. `foliage bench fio-read` does all of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/published/support_published.h"
#include "workload/fio_read.h"

static const char *const names[] = {"clru", "mglru", "fg"};

static double published_value(const struct published *p, double theta, const char *metric,
			      const char *policy)
{
	char name[32];
	double value = NAN;

	fio_read_case(theta, name, sizeof(name));
	assert_true(published_find(p, "fio-read", name, metric, policy, &value));
	return value;
}

/* Both parameters come from clru's row; the other rows' rates follow from their refaults alone. */
static void rates_from_published_refaults(void **state)
{
	struct iops_model model;
	struct err err = {""};
	struct published p;

	(void)state;
	assert_int_equal(published_load(&p, &err), 0);
	assert_int_equal(fio_read_fit(&p, &model), 0);
	assert_true(model.hit > 0 && model.device > 0);
	for (size_t i = 0; i < 3; i++) {
		for (size_t t = 0; t < FIO_READ_NR_THETAS; t++) {
			const double theta = fio_read_thetas[t];
			char what[64];

			snprintf(what, sizeof(what), "iops %s %g", names[i], theta);
			expect_near(what,
				    iops_model_predict(&model, published_value(&p, theta,
									       "refault_per_read",
									       names[i])),
				    published_value(&p, theta, "iops", names[i]),
				    i ? 0.025 : 0.016);
		}
	}
	published_free(&p);
}

static double refaults_per_read(const struct fio_read_cell *cell)
{
	assert_int_equal(cell->accesses, cell->total - cell->ramp);
	return (double)cell->refaults / (double)cell->accesses;
}

static void compare(const struct published *p, const struct fio_read_cell *cells)
{
	double published[3], measured[3];
	struct iops_model model;

	assert_int_equal(fio_read_fit(p, &model), 0);
	for (size_t i = 0; i < 3; i++) {
		published[i] = published_value(p, 0.8, "refault_per_read", names[i]);
		measured[i] = refaults_per_read(&cells[i]);
		expect_near(names[i], measured[i], published[i], 0.03);
		expect_near("iops", iops_model_predict(&model, measured[i]),
			    published_value(p, 0.8, "iops", names[i]), 0.05);
	}
	assert_true(fabs(measured[2] / measured[0] - published[2] / published[0]) <= 0.015);
	assert_true(fabs(measured[2] / measured[1] - published[2] / published[1]) <= 0.015);
}

static void refaults_at_theta_0_8(void **state)
{
	struct policy_choice choices[3];
	struct fio_read_cell cells[3] = {{0}};
	struct err err = {""};
	struct published p;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		need_policy(names[i]);
	assert_int_equal(published_load(&p, &err), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(policy_parse(names[i], &choices[i], &err), 0);
		cells[i].policy = &choices[i];
		assert_int_equal(fio_read_plan(&p, 0.8, 1, &cells[i]), 0);
	}
	if (fio_read_run(0.8, 0, 1, cells, 3, NULL, &err))
		fail_msg("%s", err.text);
	compare(&p, cells);
	for (size_t i = 0; i < 3; i++)
		policy_choice_free(&choices[i]);
	published_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_from_published_refaults),
		cmocka_unit_test(refaults_at_theta_0_8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
