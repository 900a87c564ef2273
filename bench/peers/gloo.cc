/* SPDX-License-Identifier: MIT */
/*
 * The time of a collective of Gloo over its TCP transport: float32, sum where
 * it folds, out of place.  A line "BYTES MICROSECONDS" for each size, of the
 * fastest of its algorithms there.  Those of its older interface work in place
 * only, so the input is copied first, which is timed.
 *
 *     wreath run -n N gloo COLLECTIVE DIRECTORY SECONDS TOUCH BYTES...
 */
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "measure.h"

namespace
{

using Context = std::shared_ptr<gloo::rendezvous::Context>;
using Style = gloo::AllreduceOptions::Algorithm;

void sum(void *out, const void *a, const void *b, size_t n)
{
	gloo::sum<float>(out, a, b, n);
}

struct Run {
	Context context;
	size_t count; /* of a block */
	std::vector<float> send, recv;
	float value;
	std::function<void()> once;
};

void operate(void *arg)
{
	static_cast<Run *>(arg)->once();
}

void barrier(void *arg)
{
	gloo::BarrierOptions options(static_cast<Run *>(arg)->context);

	gloo::barrier(options);
}

void fill(void *arg)
{
	Run *run = static_cast<Run *>(arg);

	std::fill(run->send.begin(), run->send.end(), run->value);
}

double max(void *arg, double value)
{
	gloo::AllreduceOptions options(static_cast<Run *>(arg)->context);
	void (*greatest)(void *, const void *, const void *, size_t) =
		&gloo::max<double>;

	options.setOutput(&value, 1);
	options.setReduceFunction(greatest);
	gloo::allreduce(options);
	return value;
}

void use(Run *run, Style style)
{
	run->once = [run, style] {
		gloo::AllreduceOptions options(run->context);

		options.setInput(run->send.data(), run->send.size());
		options.setOutput(run->recv.data(), run->recv.size());
		options.setAlgorithm(style);
		options.setReduceFunction(&sum);
		gloo::allreduce(options);
	};
}

template <typename Algorithm> void use_older(Run *run)
{
	auto algorithm = std::make_shared<Algorithm>(
		run->context, std::vector<float *>{run->recv.data()},
		static_cast<int>(run->recv.size()));

	run->once = [run, algorithm] {
		memcpy(run->recv.data(), run->send.data(),
		       run->send.size() * sizeof(float));
		algorithm->run();
	};
}

void all_gather(Run *run)
{
	run->once = [run] {
		gloo::AllgatherOptions options(run->context);

		options.setInput(run->send.data(), run->send.size());
		options.setOutput(run->recv.data(), run->recv.size());
		gloo::allgather(options);
	};
}

void all_to_all(Run *run)
{
	run->once = [run] {
		gloo::AlltoallOptions options(run->context);

		options.setInput(run->send.data(), run->send.size());
		options.setOutput(run->recv.data(), run->recv.size());
		gloo::alltoall(options);
	};
}

void broadcast(Run *run)
{
	run->once = [run] {
		gloo::BroadcastOptions options(run->context);

		if (!run->context->rank)
			options.setInput(run->send.data(), run->send.size());
		options.setOutput(run->recv.data(), run->recv.size());
		options.setRoot(0);
		gloo::broadcast(options);
	};
}

void reduce_scatter(Run *run)
{
	auto work = std::make_shared<std::vector<float>>(run->send.size());
	auto algorithm =
		std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(
			run->context, std::vector<float *>{work->data()},
			static_cast<int>(work->size()),
			std::vector<int>(run->context->size,
					 static_cast<int>(run->count)));

	run->once = [run, work, algorithm] {
		memcpy(work->data(), run->send.data(),
		       work->size() * sizeof(float));
		algorithm->run();
		memcpy(run->recv.data(), work->data(),
		       run->count * sizeof(float));
	};
}

using Choice = void (*)(Run *);

struct Collective {
	const char *name;
	bool sends_blocks, gets_blocks, folds;
	std::vector<Choice> choices;
};

const std::vector<Collective> collectives = {
	{"all_reduce", false, false, true,
	 {[](Run *r) { use(r, Style::RING); },
	  [](Run *r) { use(r, Style::BCUBE); },
	  use_older<gloo::AllreduceRingChunked<float>>,
	  use_older<gloo::AllreduceHalvingDoubling<float>>}},
	{"all_gather", false, true, false, {all_gather}},
	{"reduce_scatter", true, false, true, {reduce_scatter}},
	{"broadcast", false, false, false, {broadcast}},
	{"all_to_all", true, true, false, {all_to_all}},
};

bool is_right(const Collective &collective, const Run &run)
{
	int n = run.context->size;

	for (size_t i = 0; i < run.recv.size(); i++) {
		float want = static_cast<float>(i / run.count + 1);

		if (collective.folds)
			want = static_cast<float>(n * (n + 1) / 2);
		if (run.recv[i] != want)
			return false;
	}
	return true;
}

double best_us(const Collective &collective, Run *run, double seconds,
	       bool touch)
{
	measure how = {operate, barrier, max, touch ? fill : nullptr, run};
	double best = 0;

	for (Choice choose : collective.choices) {
		choose(run);
		std::fill(run->recv.begin(), run->recv.end(), 0.0f);
		double us = measure_us(&how, seconds);

		if (!is_right(collective, *run)) {
			fprintf(stderr, "wrong result at %zu elements\n",
				run->recv.size());
			exit(1);
		}
		if (!(best > 0) || us < best)
			best = us;
	}
	return best;
}

const Collective *find(const char *name)
{
	for (const Collective &collective : collectives)
		if (!strcmp(collective.name, name))
			return &collective;
	fprintf(stderr, "there is no collective '%s'\n", name);
	exit(1);
}

int setting(const char *name)
{
	const char *text = getenv(name);

	if (!text) {
		fprintf(stderr, "%s is not set: use wreath run\n", name);
		exit(1);
	}
	return static_cast<int>(strtol(text, nullptr, 10));
}

}

int main(int argc, char **argv)
{
	if (argc < 6) {
		fprintf(stderr, "usage: gloo COLLECTIVE DIRECTORY SECONDS "
				"TOUCH BYTES...\n");
		return 1;
	}
	const Collective &collective = *find(argv[1]);
	int rank = setting("WREATH_RANK");
	gloo::transport::tcp::attr attr;

	attr.hostname = "127.0.0.1";
	gloo::rendezvous::FileStore store(argv[2]);
	auto device = gloo::transport::tcp::CreateDevice(attr);
	auto context = std::make_shared<gloo::rendezvous::Context>(
		rank, setting("WREATH_N_RANKS"));

	context->setTimeout(std::chrono::seconds(60));
	gloo::rendezvous::Store &shared = store;
	context->connectFullMesh(shared, device);
	for (int i = 5; i < argc; i++) {
		size_t bytes = strtoull(argv[i], nullptr, 10);
		size_t n = context->size;
		size_t count = bytes / sizeof(float);

		if (collective.sends_blocks || collective.gets_blocks)
			count /= n;
		Run run = {context, count,
			   std::vector<float>(count * (collective.sends_blocks
							       ? n : 1)),
			   std::vector<float>(count * (collective.gets_blocks
							       ? n : 1)),
			   static_cast<float>(rank + 1), nullptr};

		fill(&run);
		double us = best_us(collective, &run, strtod(argv[3], nullptr),
				    strcmp(argv[4], "0") != 0);

		if (!rank) {
			printf("%zu %.4f\n", bytes, us);
			fflush(stdout);
		}
	}
	/* Its threads do not always end by themselves. */
	_Exit(0);
}
