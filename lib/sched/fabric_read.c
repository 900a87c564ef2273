/* SPDX-License-Identifier: MIT */
/* The statements of a fabric's text. */
#include <string.h>

#include "fabric_text.h"
#include "sched.h"

/* Statements, in the order of @kinds. */
enum statement {
	NODES,
	RANKS,
	RANKS_PER_NODE,
	RAIL,
	PORTS,
	NVLINK,
	TOPOLOGY,
	ROUTING,
	SWITCH,
	OVERHEAD,
	REDUCE,
	COPY,
	SLOT_BYTES,
	SLOTS,
	SLOW,
	LOST,
};

static const char *const kinds[] = {
	"nodes", "ranks", "ranks_per_node", "rail", "ports", "nvlink",
	"topology", "routing", "switch", "overhead", "reduce", "copy",
	"slot_bytes", "slots", "slow", "lost", NULL,
};

static int expect(struct reader *reader, const char *word)
{
	const char *const words[] = {word, NULL};
	struct word have;
	int found;

	words_next(reader, &have);
	found = words_choose(reader, &have, "word here", words);
	return found < 0 ? found : 0;
}

static int read_rail(struct reader *reader, struct sched_rail *rail)
{
	int err = fabric_rate(reader, "the rate", &rail->rate);

	return err ? err : fabric_time(reader, "the latency",
				       &rail->latency_ps);
}

static int read_rails(struct reader *reader, struct sched_fabric *fabric)
{
	struct word here = {reader->at, 0};

	if (fabric->n_rails == SCHED_FABRIC_RAILS_MAX)
		return words_refuse(reader, &here, "more than %d rails",
				    SCHED_FABRIC_RAILS_MAX);
	return read_rail(reader, &fabric->rails[fabric->n_rails++]);
}

static int read_topology(struct reader *reader, struct sched_fabric *fabric)
{
	const char *names[SCHED_N_TOPOLOGIES + 1];
	static const char *const more[] = {"oversubscription", NULL};
	struct word word;
	int found, err = 0;

	/* The name past the end is NULL. */
	for (found = 0; found <= SCHED_N_TOPOLOGIES; found++)
		names[found] = sched_topology_name((enum sched_topology)found);
	words_next(reader, &word);
	found = words_choose(reader, &word, "topology", names);
	if (found < 0)
		return found;
	fabric->topology = (enum sched_topology)found;
	fabric->oversubscription = 1;
	if (found == SCHED_FLAT)
		return 0;
	if (found == SCHED_SPINE_LEAF) {
		err = expect(reader, "leaf");
		if (!err)
			err = fabric_int(reader, "leaf", 1, SCHED_NODES_MAX,
					 &fabric->leaf);
	} else {
		err = expect(reader, "radix");
		if (!err)
			err = fabric_int(reader, "radix", 2, 1024,
					 &fabric->radix);
	}
	if (err || !words_next(reader, &word))
		return err;
	found = words_choose(reader, &word, "word here", more);
	return found < 0 ? found
			 : fabric_int(reader, "oversubscription", 1, 1024,
				      &fabric->oversubscription);
}

/* "link node 3 rail 1" or "link leaf 2 rail 0 up 1", and "rate 50G". */
static int read_fault(struct reader *reader, struct sched_fabric *fabric,
		      bool is_lost)
{
	static const char *const ends[] = {"node", "leaf", NULL};
	struct sched_fault fault = {.is_lost = is_lost, .line = reader->line};
	struct word word;
	int found, err = expect(reader, "link");

	if (err)
		return err;
	words_next(reader, &word);
	fault.column = (int)(word.at - reader->start) + 1;
	found = words_choose(reader, &word, "end of a link", ends);
	if (found < 0)
		return found;
	fault.is_up = found == 1;
	err = fabric_int(reader, ends[found], 0, SCHED_NODES_MAX - 1,
			 &fault.node);
	if (!err)
		err = expect(reader, "rail");
	if (!err)
		err = fabric_int(reader, "rail", 0, SCHED_FABRIC_RAILS_MAX - 1,
				 &fault.rail);
	if (!err && fault.is_up)
		err = expect(reader, "up");
	if (!err && fault.is_up)
		err = fabric_int(reader, "up", 0, SCHED_NODES_MAX - 1,
				 &fault.up);
	if (!err && !is_lost)
		err = expect(reader, "rate");
	if (!err && !is_lost)
		err = fabric_rate(reader, "the rate", &fault.rate);
	if (err)
		return err;
	if (fabric->n_faults == SCHED_FAULTS_MAX)
		return words_refuse(reader, &word, "more than %d links that "
				    "are slow or lost", SCHED_FAULTS_MAX);
	fabric->faults[fabric->n_faults++] = fault;
	return 0;
}

/* A rate at which work takes no time may be called so. */
static int read_work(struct reader *reader, const char *what, uint64_t *rate)
{
	struct reader ahead = *reader;
	struct word word;

	if (words_next(&ahead, &word) && word.length == 4 &&
	    !memcmp(word.at, "free", 4)) {
		*reader = ahead;
		*rate = 0;
		return 0;
	}
	return fabric_rate(reader, what, rate);
}

static int read_slot_bytes(struct reader *reader, struct sched_fabric *fabric)
{
	char text[WORD_SHOWN] = "";
	struct word word;
	uint64_t bytes;

	words_next(reader, &word);
	if (word.length < sizeof(text))
		memcpy(text, word.at, word.length);
	if (!base_parse_size(text, &bytes) || bytes < 64 || bytes > 1 << 30 ||
	    bytes % 64)
		return words_refuse(reader, &word,
				    "expected slot_bytes, a size from 64 to "
				    "1G in lines of 64 bytes, such as 256K");
	fabric->slot_bytes = bytes;
	return 0;
}

static int read_choice(struct reader *reader, struct sched_fabric *fabric,
		       bool is_routing)
{
	static const char *const routings[] = {"modulo", "hash", NULL};
	static const char *const ports[] = {"per_node", "per_rank", NULL};
	struct word word;
	int found;

	words_next(reader, &word);
	found = words_choose(reader, &word,
			     is_routing ? "routing" : "owner of ports",
			     is_routing ? routings : ports);
	if (found < 0)
		return found;
	if (is_routing)
		fabric->routing = (enum sched_routing)found;
	else
		fabric->is_per_rank = found;
	return 0;
}

static int read_values(struct reader *reader, struct sched_fabric *fabric,
		       enum statement kind)
{
	switch (kind) {
	case NODES:
		return fabric_int(reader, "nodes", 1, SCHED_NODES_MAX,
				  &fabric->n_nodes);
	case RANKS:
		return fabric_int(reader, "ranks", 1, SCHED_RANKS_MAX,
				  &fabric->n_ranks);
	case RANKS_PER_NODE:
		return fabric_int(reader, "ranks_per_node", 1, SCHED_RANKS_MAX,
				  &fabric->ranks_per_node);
	case RAIL:
		return read_rails(reader, fabric);
	case NVLINK:
		return read_rail(reader, &fabric->in_node);
	case TOPOLOGY:
		return read_topology(reader, fabric);
	case PORTS:
	case ROUTING:
		return read_choice(reader, fabric, kind == ROUTING);
	case SWITCH:
		return fabric_time(reader, "the latency", &fabric->switch_ps);
	case OVERHEAD:
		return fabric_time(reader, "the overhead",
				   &fabric->overhead_ps);
	case REDUCE:
		return read_work(reader, "the rate", &fabric->reduce_rate);
	case COPY:
		return read_work(reader, "the rate", &fabric->copy_rate);
	case SLOT_BYTES:
		return read_slot_bytes(reader, fabric);
	case SLOTS:
		/* With a single one a ring of sends would never end. */
		return fabric_int(reader, "slots", 2, 8, &fabric->n_slots);
	case SLOW:
	case LOST:
		return read_fault(reader, fabric, kind == LOST);
	}
	return 0;
}

static int read_line(struct reader *reader, struct sched_fabric *fabric)
{
	char text[WORD_SHOWN];
	struct word word;
	int kind, err;

	if (!words_next(reader, &word)) {
		/* A comment, or nothing at all. */
		return 0;
	}
	kind = words_choose(reader, &word, "statement", kinds);
	if (kind < 0)
		return kind;
	err = read_values(reader, fabric, (enum statement)kind);
	if (err || !words_next(reader, &word))
		return err;
	return words_refuse(reader, &word, "'%s' is more than %s takes",
			    words_shown(&word, text), kinds[kind]);
}

int sched_fabric_read(struct sched_fabric *fabric, const char *name,
		      const char *text)
{
	struct reader reader = {name, text, text, 1};
	int err;

	do {
		err = read_line(&reader, fabric);
	} while (!err && words_line(&reader));
	return err;
}
