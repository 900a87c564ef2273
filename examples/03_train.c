/* SPDX-License-Identifier: MIT */
/*
 * Data-parallel training: tell three kinds of iris apart by four measures.
 *
 * Every rank has the same model, a softmax regression, and its share of the
 * 150 flowers.  In each step a rank computes the gradient over its share, one
 * all-reduce sums the gradients of all ranks, and every rank takes the same
 * step.  In the end rank 0 trains a second model with all flowers by itself,
 * and compares.
 *
 *	cc 03_train.c $(pkg-config --cflags --libs wreath) -lm -o 03_train
 *	wreath run -n 4 ./03_train [iris.txt]
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <wreath.h>

#define N_FLOWERS 150
#define N_MEASURES 4
#define N_KINDS 3
/* A row of weights for each kind; the last weight is the bias. */
#define N_WEIGHTS (N_KINDS * (N_MEASURES + 1))

#define N_STEPS 1000
#define RATE 0.5
/*
 * Sums over the shares are not rounded as the sum over all: one step differs
 * by about 1e-16, and a thousand of them stay far below this.
 */
#define TOLERANCE 1e-9

struct flower {
	double measure[N_MEASURES];
	int kind;
};

/* What is summed over all ranks, as one vector of doubles. */
struct totals {
	double gradient[N_WEIGHTS];
	double loss;
	double n_right;
};
#define N_TOTALS (sizeof(struct totals) / sizeof(double))

static struct flower flowers[N_FLOWERS];

static int fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, wreath_error_text());
	return 1;
}

static int read_flowers(FILE *from)
{
	char line[256];
	int n = 0;

	while (fgets(line, sizeof(line), from)) {
		struct flower *flower = &flowers[n];
		double *measure = flower->measure;

		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (n == N_FLOWERS ||
		    sscanf(line, "%lf%lf%lf%lf%d", &measure[0], &measure[1],
			   &measure[2], &measure[3], &flower->kind) != 5 ||
		    flower->kind < 0 || flower->kind >= N_KINDS)
			return -1;
		n++;
	}
	return n == N_FLOWERS ? 0 : -1;
}

static int load(const char *named)
{
	static const char *const places[] = {"iris.txt", "examples/iris.txt"};
	FILE *from = NULL;
	size_t i;
	int bad;

	if (named)
		from = fopen(named, "r");
	for (i = 0; !named && !from && i < 2; i++)
		from = fopen(places[i], "r");
	if (!from) {
		fprintf(stderr, "cannot open %s; give the path of iris.txt\n",
			named ? named : "iris.txt");
		return 1;
	}
	bad = read_flowers(from);
	fclose(from);
	if (bad)
		fprintf(stderr, "%s: not %d lines of %d measures and a kind\n",
			named ? named : "iris.txt", N_FLOWERS, N_MEASURES);
	return bad;
}

/* Every measure to mean 0 and variance 1, by all flowers: all ranks alike. */
static void normalize(void)
{
	int i, k;

	for (k = 0; k < N_MEASURES; k++) {
		double sum = 0, squares = 0, mean, deviation;

		for (i = 0; i < N_FLOWERS; i++)
			sum += flowers[i].measure[k];
		mean = sum / N_FLOWERS;
		for (i = 0; i < N_FLOWERS; i++) {
			double off = flowers[i].measure[k] - mean;

			squares += off * off;
		}
		deviation = sqrt(squares / N_FLOWERS);
		for (i = 0; i < N_FLOWERS; i++)
			flowers[i].measure[k] =
				(flowers[i].measure[k] - mean) / deviation;
	}
}

/* How likely each kind is, by the model; returns the likeliest. */
static int predict(const double *weights, const struct flower *flower,
		   double likely[N_KINDS])
{
	double sum = 0, top;
	int best = 0;
	int c, k;

	for (c = 0; c < N_KINDS; c++) {
		const double *row = weights + c * (N_MEASURES + 1);

		likely[c] = row[N_MEASURES];
		for (k = 0; k < N_MEASURES; k++)
			likely[c] += row[k] * flower->measure[k];
		if (likely[c] > likely[best])
			best = c;
	}
	top = likely[best];
	for (c = 0; c < N_KINDS; c++) {
		likely[c] = exp(likely[c] - top);
		sum += likely[c];
	}
	for (c = 0; c < N_KINDS; c++)
		likely[c] /= sum;
	return best;
}

/* Over the flowers rank, rank + n_ranks, rank + 2 * n_ranks, ... */
static void add_up(const double *weights, int rank, int n_ranks,
		   struct totals *totals)
{
	int i, c, k;

	memset(totals, 0, sizeof(*totals));
	for (i = rank; i < N_FLOWERS; i += n_ranks) {
		const struct flower *flower = &flowers[i];
		double likely[N_KINDS];
		int best = predict(weights, flower, likely);

		totals->loss -= log(likely[flower->kind]);
		totals->n_right += best == flower->kind;
		for (c = 0; c < N_KINDS; c++) {
			double *row =
				totals->gradient + c * (N_MEASURES + 1);
			double off = likely[c] - (c == flower->kind);

			for (k = 0; k < N_MEASURES; k++)
				row[k] += off * flower->measure[k];
			row[N_MEASURES] += off;
		}
	}
}

/*
 * Train with the share of @rank, and sum over @comm; NULL: rank 0 alone.
 * @totals are those of the last step.
 */
static int train(struct wreath_comm *comm, double *weights,
		 struct totals *totals)
{
	int rank = comm ? wreath_comm_rank(comm) : 0;
	int n_ranks = comm ? wreath_comm_size(comm) : 1;
	int step, i;

	memset(weights, 0, N_WEIGHTS * sizeof(*weights));
	for (step = 0; step < N_STEPS; step++) {
		add_up(weights, rank, n_ranks, totals);
		if (comm && wreath_all_reduce(totals, totals, N_TOTALS,
					      WREATH_FLOAT64, WREATH_SUM, comm,
					      NULL))
			return fail("cannot reduce");
		for (i = 0; i < N_WEIGHTS; i++)
			weights[i] -=
				RATE * totals->gradient[i] / N_FLOWERS;
	}
	return 0;
}

static void show(const char *what, const struct totals *totals)
{
	printf("%-12s loss %.15f, %g of %d right\n", what,
	       totals->loss / N_FLOWERS, totals->n_right, N_FLOWERS);
}

/* Rank 0 only; 0 if both models are the same within the tolerance. */
static int compare(const double *weights, const struct totals *totals,
		   int n_ranks)
{
	double alone[N_WEIGHTS];
	struct totals alone_totals;
	double most = 0;
	char what[32];
	int i;

	train(NULL, alone, &alone_totals);
	for (i = 0; i < N_WEIGHTS; i++)
		most = fmax(most, fabs(alone[i] - weights[i]));
	snprintf(what, sizeof(what), "%d rank%s:", n_ranks,
		 n_ranks > 1 ? "s" : "");
	show(what, totals);
	show("one process:", &alone_totals);
	printf("largest difference of a weight: %.3g, allowed %g\n", most,
	       TOLERANCE);
	/* Written so that a NaN is a difference, too. */
	return !(most <= TOLERANCE &&
		 totals->n_right == alone_totals.n_right);
}

int main(int argc, char **argv)
{
	double weights[N_WEIGHTS];
	struct wreath_comm *comm;
	struct totals *totals;
	void *memory;
	int bad;

	if (load(argc > 1 ? argv[1] : NULL))
		return 1;
	normalize();
	if (wreath_comm_init_env(&comm))
		return fail("cannot join");
	/* Memory that devices reach without a copy. */
	if (wreath_mem_alloc(sizeof(*totals), &memory)) {
		fail("cannot allocate");
		wreath_comm_destroy(comm);
		return 1;
	}
	totals = memory;
	bad = train(comm, weights, totals);
	if (!bad && wreath_comm_rank(comm) == 0)
		bad = compare(weights, totals, wreath_comm_size(comm));
	if (wreath_comm_destroy(comm) && !bad)
		bad = fail("cannot leave");
	wreath_mem_free(memory);
	return bad;
}
