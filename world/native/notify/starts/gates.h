/* Programs to ask the broker about before their start: by name, and by the files behind the names in this
   world. */
#ifndef SUBSTRATE_NOTIFY_STARTS_GATES_H
#define SUBSTRATE_NOTIFY_STARTS_GATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "notify/starts/images.h"

struct frame;
struct gate;

/* Takes a GATE frame. A malformed frame ends the world. */
void gate_define(const struct frame *frame);
/* Number of the newest gate, 0 before the first. */
uint64_t gate_last(void);
/* Takes a reference to the newest gate. */
struct gate *gate_take(void);
void gate_release(struct gate *gate);

bool gate_asks_all(const struct gate *gate);
bool gate_refuses(const struct gate *gate);
/* True when the gate asks about a program with this path or name. */
bool gate_names(const struct gate *gate, const char *path);

/* Iterates over the names whose program is this file or has the same bytes: `at` begins as 0. NULL at the
   end. */
const char *gate_same(struct gate *gate, const struct image *image, size_t *at);
/* True for a dynamic loader, which runs the program in its arguments. */
bool gate_loads(struct gate *gate, const struct image *image);

#endif
