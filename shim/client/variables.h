/* Environment variables, and how the broker takes them (schemas/shared, `environment`). */
#ifndef SUBSTRATE_CLIENT_VARIABLES_H
#define SUBSTRATE_CLIENT_VARIABLES_H

#include "buffer.h"

/* Bytes of the longest name. */
#define VARIABLE_NAME 1024

/* A variable's value; NULL for an empty one too, which a script has instead of an unset one. */
const char *variable(const char *name);
/* Whether `environ` has the same name before this element: of two variables with one name getenv(3) finds the first, and a
   JSON object keeps the last. */
bool variable_is_again(char *const *variable);
/* Adds `NAME=VALUE` as a field. The name has VARIABLE_NAME bytes at most. */
void variable_add(struct buffer *body, const char *variable);
/* Adds the field `caller_env`: the variables of the caller's shell, without Substrate's own. `path` stands in place of
   PATH unless NULL. False for more or longer variables than the broker takes. */
bool variables_add(struct buffer *body, const char *path);


/* Adds the caller's file mode creation mask, where it is not that of commands whose caller sends none. */
void variables_add_umask(struct buffer *body);

#endif
