/* Questions to the person at the terminal. Node puts them (api/cli/questions), in a process beside this one that starts with
   the first question. */
#ifndef SUBSTRATE_FRONT_QUESTIONS_H
#define SUBSTRATE_FRONT_QUESTIONS_H

#include <stdbool.h>

#include "../stream/state.h"

/* Whether a person at the terminal can answer. */
bool questions_possible(void);
/* Stores a random request id, by which the broker tells whose questions are whose. False: no random bytes. */
bool questions_name(char call[CALL_SIZE]);
/* Has the questions of this call asked, those that come later too. */
void questions_ask(const char *call, const char *approval);
/* Has those asked that wait now, and waits: the terminal is the command's, so that nobody else may read keys meanwhile. */
void questions_ask_alone(const char *call, const char *approval);
/* Says where a person answers the question, for a call without a terminal that waits. */
void questions_say(const char *call, const char *approval);
/* Ends the asking, and waits until the terminal is as it was. True: the person denied. May be called again. */
bool questions_end(void);

#endif
