/* The way in which `substrate hook` fails: exit code 2 and one sentence, at any moment; 0 where it only records. */
#ifndef SUBSTRATE_FRONT_BLOCKING_H
#define SUBSTRATE_FRONT_BLOCKING_H

/* From now on signals and 20 seconds without an end block the tool too. SIGKILL cannot be caught: an agent that
   sends it, or stops waiting earlier, runs the tool. */
void blocking_begin(void);
/* From now on the sentence also stands on standard output, as the answer of Copilot that denies. */
void blocking_explain(void);
/* From now on the hook records an event that decides nothing: every failure is exit code 0, after five seconds too. */
void blocking_never(void);
/* Prints the parts up to NULL and that nothing ran, or that nothing is recorded; ends the process. */
_Noreturn void blocking_end(const char *part, ...) __attribute__((sentinel));

#endif
