#define _GNU_SOURCE
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../client/broker.h"
#include "../client/descriptors.h"
#include "../client/json.h"
#include "../client/say.h"
#include "../stream/refusal.h"
#include "../stream/standard.h"
#include "caller.h"
#include "node.h"
#include "request.h"

/* A check changes nothing, so Node may ask again after a late answer. */
#define ANSWER_SECONDS 10

/* Adds a line as a terminal shows it. Line breaks of a command or policy stay, as in Node. */
static void add_line(struct buffer *to, char *line) {
  for (char *rest = line; rest != NULL;) {
    char *part = strsep(&rest, "\n");
    add_shown(to, part);
    buffer_text(to, "\n");
  }
}

/* Prints the broker's lines to standard output. Returns TO_NODE for a broker that sends none. */
static int print(struct json reply) {
  struct json lines = json_member(reply, "lines"), verdict = json_member(json_member(reply, "decision"), "verdict");
  struct buffer text = {0};
  struct json line = json_item(lines, (struct json){0});
  if (line.text == NULL) return TO_NODE;
  for (; line.text != NULL; line = json_item(lines, line)) {
    char *copy = json_copy(line);
    if (copy != NULL) add_line(&text, copy);
    free(copy);
  }
  if (text.failed) return TO_NODE;
  /* A failed write is ignored, as in Node: the exit code is the verdict. */
  if (!write_all(STDOUT_FILENO, text.data, text.length)) text.failed = true;
  return json_is(verdict, "deny") || json_is(verdict, "ask") ? EXIT_DENIED : 0;
}

static int answered(const struct answer *answer) {
  struct json document = json_document(answer->body, answer->body == NULL ? 0 : strlen(answer->body));
  if (answer->status == 200) return print(document);
  struct json error = json_member(document, "error");
  return answer->status == 0 || error.text == NULL ? TO_NODE : refusal_say(error);
}

/* A terminal gets colours, which Node paints. */
int check_run(const struct options *options) {
  static struct caller caller;
  struct broker broker;
  struct buffer body = {0};
  if (isatty(STDOUT_FILENO) == 1 || !standard_is_open() || !caller_read(&caller, options)) return TO_NODE;
  if (!request_add(&body, &caller, options)) return TO_NODE;
  buffer_text(&body, ",\"format\":\"text\"}");
  if (body.failed || !broker_open(&broker, caller.socket)) return TO_NODE;
  if (!broker_send(&broker, "/v1/check", &body)) return TO_NODE;
  struct answer answer = broker_answer(&broker, ANSWER_SECONDS);
  return answered(&answer);
}
