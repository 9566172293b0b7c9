#include "keep.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../client/broker.h"
#include "../client/home.h"
#include "../client/json.h"
#include "../client/say.h"

#define ANSWER_SECONDS 10

static long count_of(struct json list) {
  long count = 0;
  for (struct json item = json_item(list, (struct json){0}); item.text != NULL; item = json_item(list, item)) count++;
  return count;
}

/* How many processes run in the world; -1 where the operator's socket does not say: the command ran all the same. */
static long kept_in(const char *world) {
  char path[PATH_MAX];
  struct broker broker;
  home_path(path, "sock/control.sock");
  if (!broker_open(&broker, path)) return -1;
  struct answer answer = {0, NULL, NULL};
  if (broker_get(&broker, "/v1/health")) answer = broker_answer(&broker, ANSWER_SECONDS);
  if (answer.status != 200) return -1;
  struct json worlds = json_member(json_document(answer.body, strlen(answer.body)), "worlds");
  if (worlds.text == NULL) return -1;
  for (struct json one = json_item(worlds, (struct json){0}); one.text != NULL; one = json_item(worlds, one)) {
    if (json_is(json_member(one, "world_id"), world)) return count_of(json_member(one, "processes"));
  }
  return 0;
}

void keep_say(const char *world, const char *agent) {
  const char *of = agent == NULL ? "" : " --agent ";
  if (agent == NULL) agent = "";
  char many[64] = "background processes are still running";
  long count = kept_in(world);
  if (count == 0) return;
  if (count > 0) snprintf(many, sizeof many, count == 1 ? "1 process is still running" : "%ld processes are still running", count);
  say(many,
      " in this folder's world: 'substrate world status' lists them, 'substrate world publish PORT", of, agent,
      "' forwards a port of 127.0.0.1 to one, 'substrate world restart", of, agent, "' ends them", NULL);
}
