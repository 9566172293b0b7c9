/* Questions to the person at the terminal. Node puts them (api/cli/questions), in a process of its own. */
#ifndef SUBSTRATE_FRONT_QUESTIONS_H
#define SUBSTRATE_FRONT_QUESTIONS_H

#include <stdbool.h>

#include "../stream/state.h"

/* Whether a person at the terminal can answer. */
bool questions_possible(void);
/* Stores a random request id, by which the broker tells whose questions are whose. False: no random bytes. */
bool questions_name(char call[CALL_SIZE]);
/* Has the questions of this call asked that wait now, and waits: nobody else may read keys or print meanwhile. */
void questions_ask(const char *call, const char *approval);
/* Says where a person answers the question, for a call without a terminal that waits. */
void questions_say(const char *call, const char *approval);
/* Whether the person denied. */
bool questions_denied(void);

#endif
