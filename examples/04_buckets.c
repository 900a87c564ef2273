/* SPDX-License-Identifier: MIT */
/*
 * Gradient buckets: send the first gradients while the next are computed.
 *
 * The backward pass of a model yields gradients layer by layer, the last layer
 * first.  Here they are laid out in that order, and cut into buckets of whole
 * layers; as soon as a bucket is full, its all-reduce goes on a stream, whose
 * thread runs it while this one computes the layers before.  The same step is
 * done without overlap, for comparison, and rank 0 computes the gradients of
 * all ranks by itself, to check the result.
 *
 *	cc 04_buckets.c $(pkg-config --cflags --libs wreath) -lm -o 04_buckets
 *	wreath run -n 2 ./04_buckets
 *
 * Between ranks of one machine the all-reduce is work for its cores as well,
 * and overlap hides little.  A soft port with a rate is like a network there:
 *
 *	WREATH_SOFT=roce:1@2G wreath run -n 2 ./04_buckets
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <wreath.h>

#define N_LAYERS 8
#define WIDTH 192
#define N_SAMPLES 32 /* of each rank */
#define LAYER (WIDTH * WIDTH) /* weights, and as many gradients */
#define N_GRADIENTS (N_LAYERS * LAYER)

/* Layers of a bucket: 288 KiB, which keep a network busy for a while. */
#define BUCKET 2
#define N_STEPS 5
/*
 * Floats have 24 bits: sums over samples and ranks in another order differ in
 * the last of them, relative to the largest gradient.
 */
#define TOLERANCE 1e-5

/* Row by row: weights[l][out * WIDTH + in], values[l][sample * WIDTH + i]. */
static float weights[N_LAYERS][LAYER];
static float values[N_LAYERS + 1][N_SAMPLES * WIDTH];

/* What a backward pass needs to start an all-reduce, or NULL not to. */
struct overlap {
	struct wreath_comm *comm;
	struct wreath_stream *stream;
};

static int fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, wreath_error_text());
	return 1;
}

/* From -1 to 1, the same on every machine. */
static float draw(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (float)(int32_t)(*state >> 32) / 2147483648.0f;
}

static void make_model(void)
{
	uint64_t state = 1;
	int l, i;

	for (l = 0; l < N_LAYERS; l++)
		for (i = 0; i < LAYER; i++)
			weights[l][i] = draw(&state) / sqrtf(WIDTH / 3.0f);
}

/* The leaky rectifier of each output, and its slope. */
static float rectify(float sum)
{
	return sum > 0 ? sum : sum * 0.125f;
}

static float slope(float out)
{
	return out > 0 ? 1 : 0.125f;
}

static void forward_layer(int l)
{
	int s, o, i;

	for (s = 0; s < N_SAMPLES; s++) {
		const float *in = values[l] + s * WIDTH;

		for (o = 0; o < WIDTH; o++) {
			const float *row = weights[l] + o * WIDTH;
			float sum = 0;

			for (i = 0; i < WIDTH; i++)
				sum += row[i] * in[i];
			values[l + 1][s * WIDTH + o] = rectify(sum);
		}
	}
}

/* Through all layers, with the samples of @rank. */
static void forward(int rank)
{
	uint64_t state = 1000 + (uint64_t)rank;
	int l, i;

	for (i = 0; i < N_SAMPLES * WIDTH; i++)
		values[0][i] = draw(&state);
	for (l = 0; l < N_LAYERS; l++)
		forward_layer(l);
}

/*
 * The gradient of layer @l from @error, that of its outputs, which becomes that
 * of its inputs.
 */
static void backward_layer(int l, float *error, float *gradient)
{
	static float before[N_SAMPLES * WIDTH];
	int s, i, o;

	memset(gradient, 0, LAYER * sizeof(*gradient));
	memset(before, 0, sizeof(before));
	for (s = 0; s < N_SAMPLES; s++)
		for (o = 0; o < WIDTH; o++) {
			float out = values[l + 1][s * WIDTH + o];
			float off = error[s * WIDTH + o] * slope(out);
			const float *row = weights[l] + o * WIDTH;
			const float *in = values[l] + s * WIDTH;

			for (i = 0; i < WIDTH; i++) {
				gradient[o * WIDTH + i] += off * in[i];
				before[s * WIDTH + i] += off * row[i];
			}
		}
	memcpy(error, before, sizeof(before));
}

/* The average over all ranks, in place; returns at once with a stream. */
static int reduce(float *bucket, const struct overlap *with,
		  struct wreath_stream *stream)
{
	return wreath_all_reduce(bucket, bucket, BUCKET * LAYER,
				 WREATH_FLOAT32, WREATH_AVG, with->comm,
				 stream);
}

/*
 * All layers, the last one first, into @gradients in that order.  The loss is
 * half the square of the outputs, so that its gradient is the outputs.
 */
static int backward(float *gradients, const struct overlap *overlap)
{
	static float error[N_SAMPLES * WIDTH];
	int n;

	memcpy(error, values[N_LAYERS], sizeof(error));
	for (n = 1; n <= N_LAYERS; n++) {
		backward_layer(N_LAYERS - n, error,
			       gradients + (n - 1) * LAYER);
		/* A bucket is full, and nobody touches it any more. */
		if (overlap && n % BUCKET == 0 &&
		    reduce(gradients + (n - BUCKET) * LAYER, overlap,
			   overlap->stream))
			return 1;
	}
	return 0;
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* The time of the fastest step; negative after an error. */
static double train(float *gradients, const struct overlap *with,
		    int is_overlapped)
{
	double least = INFINITY;
	int step, n;

	for (step = 0; step < N_STEPS; step++) {
		double start;
		int bad;

		forward(wreath_comm_rank(with->comm));
		bad = wreath_barrier(with->comm, NULL);
		start = now_ms();
		if (!bad)
			bad = backward(gradients, is_overlapped ? with : NULL);
		for (n = 0; n < N_LAYERS && !is_overlapped && !bad;
		     n += BUCKET)
			bad = reduce(gradients + n * LAYER, with, NULL);
		/* The optimizer needs all of them. */
		if (!bad)
			bad = wreath_stream_wait(with->stream);
		if (bad)
			return -1;
		least = fmin(least, now_ms() - start);
	}
	return least;
}

/* Rank 0 only: @gradients against the average, computed by one process. */
static int compare(const float *gradients, int n_ranks)
{
	static float mine[N_GRADIENTS];
	static double sums[N_GRADIENTS];
	double largest = 0;
	double most = 0;
	int r, i;

	for (r = 0; r < n_ranks; r++) {
		forward(r);
		backward(mine, NULL);
		for (i = 0; i < N_GRADIENTS; i++)
			sums[i] += (double)mine[i];
	}
	for (i = 0; i < N_GRADIENTS; i++) {
		double want = sums[i] / n_ranks;

		largest = fmax(largest, fabs(want));
		most = fmax(most, fabs(want - (double)gradients[i]));
	}
	printf("largest difference from one process: %.3g of the largest "
	       "gradient, allowed %g\n", most / largest, TOLERANCE);
	/* Written so that a NaN is a difference, too. */
	return !(most <= TOLERANCE * largest);
}

/* @plain and @overlapped are two vectors of all gradients. */
static int measure(const struct overlap *with, float *plain, float *overlapped)
{
	int n_ranks = wreath_comm_size(with->comm);
	double plain_ms, overlapped_ms;

	make_model();
	plain_ms = train(plain, with, 0);
	overlapped_ms = plain_ms < 0 ? -1 : train(overlapped, with, 1);
	if (overlapped_ms < 0)
		return fail("cannot reduce");
	if (memcmp(plain, overlapped, N_GRADIENTS * sizeof(*plain))) {
		fprintf(stderr, "the overlap has changed the gradients\n");
		return 1;
	}
	if (wreath_comm_rank(with->comm))
		return 0;
	printf("%d rank%s, %d layers, %zu KiB of gradients in %d buckets\n",
	       n_ranks, n_ranks > 1 ? "s" : "", N_LAYERS,
	       N_GRADIENTS * sizeof(float) / 1024, N_LAYERS / BUCKET);
	printf("backward pass, then all-reduce: %8.3f ms\n", plain_ms);
	printf("all-reduce in the meantime:     %8.3f ms\n", overlapped_ms);
	return compare(overlapped, n_ranks);
}

int main(void)
{
	struct overlap with;
	void *memory;
	int bad;

	if (wreath_comm_init_env(&with.comm))
		return fail("cannot join");
	/* Memory that devices reach without a copy. */
	if (wreath_mem_alloc(2 * N_GRADIENTS * sizeof(float), &memory)) {
		fail("cannot allocate");
		wreath_comm_destroy(with.comm);
		return 1;
	}
	bad = wreath_stream_create(&with.stream) ? fail("no stream") : 0;
	if (!bad) {
		bad = measure(&with, memory, (float *)memory + N_GRADIENTS);
		/* Before the communicator that its calls were for. */
		if (wreath_stream_destroy(with.stream) && !bad)
			bad = fail("the stream failed");
	}
	if (wreath_comm_destroy(with.comm) && !bad)
		bad = fail("cannot leave");
	wreath_mem_free(memory);
	return bad;
}
