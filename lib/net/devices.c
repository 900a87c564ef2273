/* SPDX-License-Identifier: MIT */
/* Opening the devices that may be used. */
#include <stdio.h>
#include <string.h>

#include "net/search.h"

#define LIST_MAX 64

void net_search_refuse(struct net_search *search, int error, const char *text)
{
	size_t at = strlen(search->why);

	/* What the user asked for and cannot have goes before what is not. */
	if (!search->error || error == WREATH_EINVAL)
		search->error = error;
	snprintf(search->why + at, sizeof(search->why) - at, "%s%s",
		 at ? "; " : "", text);
}

static bool is_open(const struct net_search *search,
		    const struct verbs_table *verbs, const char *name,
		    int number)
{
	int i;

	for (i = 0; i < search->net->n_devices; i++)
		if (search->net->devices[i]->verbs == verbs &&
		    !strcmp(search->net->devices[i]->name, name) &&
		    search->numbers[i] == number)
			return true;
	return false;
}

static int add_device(struct net_search *search,
		      const struct verbs_table *verbs, const char *name,
		      int number)
{
	struct net *net = search->net;
	int err;

	if (net->n_devices == NET_DEVICES_MAX ||
	    is_open(search, verbs, name, number))
		return 0;
	err = verbs_device_open(verbs, name, &net->devices[net->n_devices]);
	if (err)
		return err;
	search->numbers[net->n_devices] = number;
	search->are_soft[net->n_devices] = verbs == search->args->soft;
	net->n_devices++;
	return 0;
}

static int add_all(struct net_search *search, const struct verbs_table *verbs)
{
	struct verbs_name names[LIST_MAX];
	int i, n;
	int err = verbs_list(verbs, names, LIST_MAX, &n);

	if (err)
		return err;
	search->n_listed += n;
	for (i = 0; i < n && i < LIST_MAX; i++) {
		err = add_device(search, verbs, names[i].name, 0);
		if (err == WREATH_ENOMEM)
			return err;
		if (err)
			net_search_refuse(search, err, base_error_text());
	}
	return 0;
}

/* "NAME" or "NAME:PORT"; 0 stands for any port. */
static int parse_hca(const char *text, char name[64], int *number)
{
	const char *colon = strrchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : strlen(text);
	int64_t value = 0;

	if (!length || length >= 64 ||
	    (colon && !base_parse_int(colon + 1, 1, 255, &value)))
		return base_error(WREATH_EINVAL,
				  "WREATH_HCA='%.64s' is not NAME or "
				  "NAME:PORT with a port from 1 to 255", text);
	memcpy(name, text, length);
	name[length] = 0;
	*number = (int)value;
	return 0;
}

/* A device that WREATH_HCA names, of the first provider that has it. */
static int add_named(struct net_search *search, const char *wanted)
{
	const struct verbs_table *const tables[] = {search->args->soft,
						    search->args->ibv};
	char known[256] = "";
	char name[64];
	int number = 0;
	int err = parse_hca(wanted, name, &number);
	size_t t;

	for (t = 0; t < base_countof(tables) && !err; t++) {
		struct verbs_name names[LIST_MAX];
		int i;
		int n = 0;

		if (!tables[t] || verbs_list(tables[t], names, LIST_MAX, &n))
			continue;
		for (i = 0; i < n && i < LIST_MAX; i++) {
			size_t at = strlen(known);

			snprintf(known + at, sizeof(known) - at, " %.32s",
				 names[i].name);
			if (!strcmp(names[i].name, name))
				return add_device(search, tables[t], name,
						  number);
		}
	}
	if (err)
		return err;
	return base_error(WREATH_EINVAL,
			  "WREATH_HCA=%s: there is no such device; there are:%s",
			  wanted, *known ? known : " none");
}

static int add_list(struct net_search *search, const char *wanted)
{
	char copy[512];
	char *word, *rest = NULL;
	int n = 0;
	int err = 0;

	snprintf(copy, sizeof(copy), "%s", wanted);
	for (word = strtok_r(copy, ",", &rest); word && !err;
	     word = strtok_r(NULL, ",", &rest), n++)
		err = add_named(search, word);
	if (!err && !n)
		return base_error(WREATH_EINVAL,
				  "WREATH_HCA='%.64s' names no device: it is a "
				  "list of NAME or NAME:PORT", wanted);
	return err;
}

int net_devices_open(struct net_search *search)
{
	const struct net_args *args = search->args;
	int err = 0;

	if (*args->env->text[BASE_ENV_HCA])
		return add_list(search, args->env->text[BASE_ENV_HCA]);
	if (args->soft)
		err = add_all(search, args->soft);
	if (!err && args->ibv &&
	    (!args->all_local || args->all_ports || !args->soft))
		err = add_all(search, args->ibv);
	return err;
}
