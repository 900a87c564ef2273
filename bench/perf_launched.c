/* SPDX-License-Identifier: MIT */
/* One rank of those that a launcher has started; rank 0 shows the results. */
#include <signal.h>
#include <stdlib.h>

#include "bench/perf_measure.h"

static struct perf_page *page;

/* Ranks hear of it at different times, and agree on when to stop. */
static void catch(int number)
{
	(void)number;
	atomic_store(&page->is_interrupted, 1);
}

int perf_launched(const struct perf_options *options,
		  struct perf_report *report)
{
	struct perf_job job = {.options = options, .rank = -1};
	struct sigaction action = {.sa_handler = catch,
				   .sa_flags = SA_RESETHAND | SA_RESTART};
	int status;

	page = base_alloc(1, sizeof(*page));
	if (!page)
		return BENCH_FAILED;
	job.sink.fd = -1;
	job.sink.report = report;
	job.page = page;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	status = perf_rank(&job);
	if (status)
		status = perf_failure(page, report->error,
				      sizeof(report->error));
	report->is_interrupted = atomic_load(&page->is_interrupted);
	base_free(page);
	return status;
}
