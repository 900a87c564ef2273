/* SPDX-License-Identifier: MIT */
/*
 * Goal: Gloo's ibverbs transport computes right results over whatever device
 * libibverbs has.  Method: `gloo DIRECTORY RANK SIZE` is one of SIZE
 * processes that meet in DIRECTORY; sums of whole numbers by its algorithms
 * that use this transport, of several sizes, each twice with other inputs, and
 * a broadcast from each rank.
 *
 * A buffer of Gloo's must not be destroyed before a thread of its own has seen
 * that what it sent last is sent, and no call waits for that: so nothing is
 * destroyed here, and all end together.
 */
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace
{

using Context = std::shared_ptr<gloo::rendezvous::Context>;

int input(int rank, size_t i, int round)
{
	return static_cast<int>((i * 7 + 3) % 1000) * (rank + 1) + round;
}

bool is_sum(const std::vector<int> &data, int n_ranks, int round)
{
	for (size_t i = 0; i < data.size(); i++) {
		int want = 0;

		for (int rank = 0; rank < n_ranks; rank++)
			want += input(rank, i, round);
		if (data[i] != want) {
			fprintf(stderr, "element %zu of %zu: %d, not %d\n", i,
				data.size(), data[i], want);
			return false;
		}
	}
	return true;
}

template <typename Algorithm>
bool all_reduce(const Context &context, size_t elems)
{
	auto &data = *new std::vector<int>(elems);
	auto &algorithm = *new Algorithm(context, {data.data()},
					 static_cast<int>(elems));

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < elems; i++)
			data[i] = input(context->rank, i, round);
		algorithm.run();
		if (!is_sum(data, context->size, round))
			return false;
	}
	return true;
}

bool broadcast(const Context &context, size_t elems, int root)
{
	auto &data = *new std::vector<int>(
		elems, context->rank == root ? root + 5 : -1);
	auto &algorithm = *new gloo::BroadcastOneToAll<int>(
		context, {data.data()}, static_cast<int>(elems), root);

	algorithm.run();
	for (int value : data) {
		if (value != root + 5)
			return false;
	}
	return true;
}

bool is_right(const Context &context)
{
	for (size_t elems : {1, 100, 4096, 100000}) {
		if (!all_reduce<gloo::AllreduceRing<int>>(context, elems) ||
		    !all_reduce<gloo::AllreduceRingChunked<int>>(context,
								 elems) ||
		    !all_reduce<gloo::AllreduceHalvingDoubling<int>>(context,
								     elems))
			return false;
		for (int root = 0; root < context->size; root++) {
			if (!broadcast(context, elems, root))
				return false;
		}
	}
	return true;
}

/* Once all are here, all are done. */
void meet(const std::string &directory, int rank, int size)
{
	auto name = [&](int i) {
		return directory + "/done." + std::to_string(i);
	};
	FILE *file = fopen(name(rank).c_str(), "w");

	if (file)
		fclose(file);
	for (int i = 0; i < size; i++) {
		while (access(name(i).c_str(), F_OK))
			usleep(1000);
	}
}

} /* namespace */

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	alarm(60);
	gloo::transport::ibverbs::attr attr = {"soft0", 1, 0};
	auto device = gloo::transport::ibverbs::CreateDevice(attr);
	auto context = std::make_shared<gloo::rendezvous::Context>(
		atoi(argv[2]), atoi(argv[3]));
	gloo::rendezvous::FileStore store(argv[1]);

	context->connectFullMesh(store, device);
	if (!is_right(context))
		return 1;
	meet(argv[1], context->rank, context->size);
	puts("right");
	fflush(stdout);
	_exit(0);
}
