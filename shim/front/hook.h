/* `substrate hook AGENT`: answers a coding agent's event before one of its tools runs. */
#ifndef SUBSTRATE_FRONT_HOOK_H
#define SUBSTRATE_FRONT_HOOK_H

/* Reads the event from standard input, has the broker judge it and prints the agent's answer. `words` begin behind
   `hook`. Returns 0, or TO_NODE for help; everything else that goes wrong is exit code 2, by which agents block a
   tool. After any other code, and after an answer that is no valid JSON, they would run the tool as it is. */
int hook_run(char *const words[]);

#endif
