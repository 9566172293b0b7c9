/* Which programs are asked about before they start: by name, and by what stands behind a name in this world. */
#ifndef SUBSTRATE_NOTIFY_STARTS_GATES_H
#define SUBSTRATE_NOTIFY_STARTS_GATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "notify/starts/images.h"

struct frame;
struct gate;

/* GATE: a malformed one ends the world. */
void gate_define(const struct frame *frame);
/* The number of the last one, 0: there is none yet. */
uint64_t gate_last(void);
/* The last one, with a reference to it more. */
struct gate *gate_take(void);
void gate_release(struct gate *gate);

bool gate_asks_all(const struct gate *gate);
bool gate_refuses(const struct gate *gate);
/* Whether a program of this path, or name, is asked about. */
bool gate_names(const struct gate *gate, const char *path);

/* Walks the names whose program is this file, or has the same bytes: `at` begins as 0. NULL: no more. */
const char *gate_same(struct gate *gate, const struct image *image, size_t *at);
/* Whether it is a dynamic loader, which runs the program that its arguments name. */
bool gate_loads(struct gate *gate, const struct image *image);

#endif
