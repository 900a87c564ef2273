/* SPDX-License-Identifier: MIT */
/* Drawing with gnuplot, where it is installed. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"

/* gnuplot with its input from us; NULL where there is none to be had. */
static FILE *start(pid_t *pid)
{
	int fds[2];
	FILE *to;

	if (pipe(fds))
		return NULL;
	*pid = fork();
	if (!*pid) {
		dup2(fds[0], 0);
		close(fds[0]);
		close(fds[1]);
		execlp("gnuplot", "gnuplot", "-", (char *)NULL);
		_exit(127);
	}
	close(fds[0]);
	to = *pid < 0 ? NULL : fdopen(fds[1], "w");
	if (!to)
		close(fds[1]);
	return to;
}

static bool write_script(const struct bench_plot *plot)
{
	char name[4096];
	FILE *to;

	snprintf(name, sizeof(name), "%s.gp",
		 strcmp(plot->path, "-") ? plot->path : plot->fallback);
	to = fopen(name, "w");
	if (to)
		plot->put(plot->arg, to, plot->path);
	if (!to || fclose(to)) {
		fprintf(stderr, "%s: cannot write %s: %s\n", plot->command,
			name, strerror(errno));
		return false;
	}
	fprintf(stderr, "%s: gnuplot is not installed; the plot with its data "
			"is in %s, for `gnuplot %s`\n", plot->command, name,
		name);
	return false;
}

bool bench_plot(const struct bench_plot *plot)
{
	void (*old)(int) = signal(SIGPIPE, SIG_IGN);
	pid_t pid = -1;
	FILE *to;
	int how = 0;

	/* It would end the name within gnuplot's quotes. */
	if (strchr(plot->path, '\'')) {
		fprintf(stderr, "%s: --plot: a name with ' in it cannot be "
				"given to gnuplot\n", plot->command);
		return false;
	}
	fflush(NULL);
	to = start(&pid);
	if (to) {
		plot->put(plot->arg, to, plot->path);
		fclose(to);
	}
	while (pid > 0 && waitpid(pid, &how, 0) < 0 && errno == EINTR)
		;
	signal(SIGPIPE, old);
	if (!to || (WIFEXITED(how) && WEXITSTATUS(how) == 127))
		return write_script(plot);
	if (!WIFEXITED(how) || WEXITSTATUS(how)) {
		fprintf(stderr, "%s: gnuplot could not draw %s\n",
			plot->command, plot->path);
		return false;
	}
	return true;
}

void bench_plot_start(FILE *to, const char *path)
{
	if (!strcmp(path, "-"))
		fprintf(to, "set terminal dumb size 79, 24\n");
	else
		fprintf(to, "set terminal svg size 1000, 420 font 'sans,12' "
			    "background 'white'\nset output '%s'\n"
			    "set multiplot layout 1, 2\n", path);
	/* gnuplot's own binary prefixes leave a gap where there is none. */
	fprintf(to, "set logscale x 2\nset xtics ('1' 1, '16' 16, '256' 256, "
		    "'4K' 4096, '64K' 65536, '1M' 2**20, '16M' 2**24, "
		    "'256M' 2**28, '4G' 2.0**32, '64G' 2.0**36)\nset grid\n"
		    "set key top left%s\nset xlabel 'bytes'\n"
		    "set ylabel 'GB/s' offset 1\n",
		strcmp(path, "-") ? " font ',9'" : "");
}
