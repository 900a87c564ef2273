/* SPDX-License-Identifier: MIT */
/*
 * The time of Gloo's all-reduce over its TCP transport: float32, sum, out of
 * place.  A line "BYTES MICROSECONDS" for each size, of the fastest of its
 * algorithms there.  Those of its older interface work in place only, so the
 * input is copied first, which is timed.
 *
 *     wreath run -n N gloo DIRECTORY SECONDS TOUCH BYTES...
 */
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
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

bool is_right(const Run &run)
{
	int n = run.context->size;

	for (float x : run.recv) {
		if (x != static_cast<float>(n * (n + 1) / 2))
			return false;
	}
	return true;
}

double best_us(Run *run, double seconds, bool touch)
{
	static void (*const choices[])(Run *) = {
		[](Run *r) { use(r, Style::RING); },
		[](Run *r) { use(r, Style::BCUBE); },
		use_older<gloo::AllreduceRingChunked<float>>,
		use_older<gloo::AllreduceHalvingDoubling<float>>,
	};
	measure how = {operate, barrier, max, touch ? fill : nullptr, run};
	double best = 0;

	for (auto choose : choices) {
		choose(run);
		std::fill(run->recv.begin(), run->recv.end(), 0.0f);
		double us = measure_us(&how, seconds);

		if (!is_right(*run)) {
			fprintf(stderr, "wrong result at %zu elements\n",
				run->recv.size());
			exit(1);
		}
		if (!(best > 0) || us < best)
			best = us;
	}
	return best;
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
	if (argc < 5) {
		fprintf(stderr, "usage: gloo DIRECTORY SECONDS TOUCH "
				"BYTES...\n");
		return 1;
	}
	int rank = setting("WREATH_RANK");
	gloo::transport::tcp::attr attr;

	attr.hostname = "127.0.0.1";
	gloo::rendezvous::FileStore store(argv[1]);
	auto device = gloo::transport::tcp::CreateDevice(attr);
	auto context = std::make_shared<gloo::rendezvous::Context>(
		rank, setting("WREATH_N_RANKS"));

	context->setTimeout(std::chrono::seconds(60));
	gloo::rendezvous::Store &shared = store;
	context->connectFullMesh(shared, device);
	for (int i = 4; i < argc; i++) {
		size_t bytes = strtoull(argv[i], nullptr, 10);
		size_t count = bytes / sizeof(float);
		Run run = {context, std::vector<float>(count),
			   std::vector<float>(count),
			   static_cast<float>(rank + 1), nullptr};

		fill(&run);
		double us = best_us(&run, strtod(argv[2], nullptr),
				    strcmp(argv[3], "0") != 0);

		if (!rank) {
			printf("%zu %.4f\n", bytes, us);
			fflush(stdout);
		}
	}
	/* Its threads do not always end by themselves. */
	_Exit(0);
}
