#define _GNU_SOURCE
#include "refusal.h"

#include <stdlib.h>
#include <string.h>

#include "../client/say.h"

/* Bytes of an unreadable answer that are shown. */
#define SHOWN 200

/* Refusals by policy, budget or person (BY_POLICY in api/cli/terminal/replies.ts). */
static const char *const BY_POLICY[] = {"policy_denied", "approval_required", "approval_denied", "scope_denied", "budget_exceeded"};

static bool is_by_policy(struct json code) {
  for (size_t i = 0; i < sizeof BY_POLICY / sizeof *BY_POLICY; i++) {
    if (json_is(code, BY_POLICY[i])) return true;
  }
  return false;
}

int refusal_say(struct json error) {
  char *message = json_copy(json_member(error, "message")), *hint = json_copy(json_member(error, "hint"));
  long code = is_by_policy(json_member(error, "code")) ? EXIT_DENIED : EXIT_FAILED, given;
  if (message == NULL) return refusal_not_json(error.text == NULL ? "" : error.text, error.length);
  say_with_hint(message, hint);
  if (json_integer(json_member(error, "exit"), 0, 255, &given)) code = given;
  free(message);
  free(hint);
  return (int)code;
}

int refusal_no_reply(void) {
  say("The broker ended before it replied. 'substrate broker logs' shows its last messages, 'substrate broker start' "
      "starts it again",
      NULL);
  return EXIT_FAILED;
}

int refusal_not_json(const char *text, size_t length) {
  char *shown = strndup(text, length < SHOWN ? length : SHOWN);
  say("The broker's answer is not JSON: ", shown == NULL ? "" : shown, NULL);
  free(shown);
  return EXIT_FAILED;
}
