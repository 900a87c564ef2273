/* SPDX-License-Identifier: MIT */
/*
 * The same as 01_hello.c in C++: a communicator that ends with its scope, and
 * errors as exceptions.
 *
 *	c++ 02_hello.cc $(pkg-config --cflags --libs wreath) -o 02_hello
 *	wreath run -n 4 ./02_hello
 */
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <vector>
#include <wreath.h>

static void check(int error)
{
	if (error < 0)
		throw std::runtime_error(wreath_error_text());
}

class communicator {
public:
	communicator()
	{
		check(wreath_comm_init_env(&comm));
	}

	/*
	 * After an exception the other ranks may never come to the end of
	 * theirs: nothing is waited for that leave() has not waited for.
	 */
	~communicator()
	{
		if (!comm)
			return;
		wreath_comm_abort(comm);
		wreath_comm_destroy(comm);
	}

	communicator(const communicator &) = delete;
	communicator &operator=(const communicator &) = delete;

	int rank() const
	{
		return wreath_comm_rank(comm);
	}

	int size() const
	{
		return wreath_comm_size(comm);
	}

	const char *device() const
	{
		return wreath_comm_device(comm);
	}

	std::vector<float> sum(const std::vector<float> &send)
	{
		std::vector<float> recv(send.size());

		check(wreath_all_reduce(send.data(), recv.data(), send.size(),
					WREATH_FLOAT32, WREATH_SUM, comm,
					nullptr));
		return recv;
	}

	/* Wait for the others, and say so if that fails. */
	void leave()
	{
		struct wreath_comm *gone = comm;

		comm = nullptr;
		check(wreath_comm_destroy(gone));
	}

private:
	struct wreath_comm *comm = nullptr;
};

static void hello()
{
	communicator comm;
	std::vector<float> send;
	std::ostringstream line;

	for (int i = 0; i < 4; i++)
		send.push_back(static_cast<float>(comm.rank() + 10 * i));
	line << "rank " << comm.rank() << " of " << comm.size() << " on "
	     << comm.device() << ": the sums are";
	for (float value : comm.sum(send))
		line << ' ' << value;
	/* One write, so that the lines of several ranks do not mix. */
	std::cout << line.str() + "\n" << std::flush;
	comm.leave();
}

int main()
{
	try {
		hello();
	} catch (const std::exception &failure) {
		std::cerr << failure.what() << std::endl;
		return 1;
	}
	return 0;
}
