/* A change from its plan to its end. The order of steps makes a change whole after a kill:
   1. the plan is on disk, 2. everything is staged, 3. `placed` is on disk, 4. renames,
   5. `record` is on disk: the change has now happened,
   6. replaced files are kept, the staging folder is removed, 7. `finished`. */
#define _GNU_SOURCE
#include "changes/held_change.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "changes/held_commit.h"
#include "changes/held_rollback.h"

/* After a rollback. The page goes first: without it, and without a staging folder, nothing is left to take back. */
static int remove_stage(struct plan *plan) {
  if (unlinkat(plan->home, "placed", 0) < 0 && errno != ENOENT) return -1;
  return stage_remove(plan, plan->project_seen.mtime);
}

static void take_back(struct plan *plan, const struct verdict *verdict, struct text *answer) {
  struct text notes = {0};
  bool whole = roll_back(plan, &notes);
  if (whole && plan->stage >= 0 && remove_stage(plan) < 0) {
    text_field(&notes, plan->stage_name);
    text_field(&notes, strerror(errno));
  }
  text_field(answer, verdict->kind == CONFLICT ? "conflict" : "failed");
  text_field(answer, verdict->path);
  text_field(answer, verdict->reason);
  if (verdict->kind != CONFLICT) text_field(answer, verdict->error == 0 ? "" : strerror(verdict->error));
  text_add(answer, notes.data, notes.length);
  text_clear(&notes);
}

void change_run(const char *home, struct text *answer) {
  struct plan plan;
  struct verdict verdict = {0};
  const char *wrong = plan_open(&plan, home);
  if (wrong != NULL) {
    text_field(answer, "failed");
    text_field(answer, "");
    text_field(answer, wrong);
    text_field(answer, "");
  } else {
    verdict = commit_check(&plan);
    if (verdict.kind == SUCCESS) verdict = stage_make(&plan);
    if (verdict.kind == SUCCESS) verdict = commit(&plan);
    if (verdict.kind != SUCCESS) take_back(&plan, &verdict, answer);
    /* The change has happened: a later recovery can do the rest. */
    else text_field(answer, commit_finish(&plan) < 0 ? "unfinished" : "done");
  }
  plan_close(&plan);
}

static bool exists(const struct plan *plan, const char *name) {
  struct stat status;
  return fstatat(plan->home, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Reads the journal's page of staged files; without this page no file was put in place. */
static bool read_placed(struct plan *plan, struct text *page) {
  if (!exists(plan, "placed")) return true;
  if (text_read(page, plan->home, "placed") < 0) return false;
  struct text_reader reader = {page->data, page->data + page->length};
  for (size_t i = 0; i < plan->count; i++) {
    const char *sight = text_next(&reader);
    if (sight == NULL || !sight_read(sight, &plan->steps[i].placed)) return false;
  }
  return true;
}

static void recover(struct plan *plan, struct text *answer) {
  struct text notes = {0}, page = {0};
  bool staged = stage_open(plan);
  const char *ending = "stuck";
  errno = 0;
  if (exists(plan, "record")) {
    if (commit_finish(plan) == 0) ending = "finished";
  } else if (!staged && !exists(plan, "placed")) {
    ending = "back";
  } else if (staged && read_placed(plan, &page) && roll_back(plan, &notes) && remove_stage(plan) == 0) {
    ending = "back";
  }
  text_field(answer, ending);
  if (strcmp(ending, "stuck") == 0) text_field(answer, !staged ? "the staging folder is gone" : errno == 0 ? "the journal is malformed" : strerror(errno));
  text_add(answer, notes.data, notes.length);
  text_clear(&notes);
  text_clear(&page);
}

void change_recover(const char *home, struct text *answer) {
  struct plan plan;
  const char *wrong = plan_open(&plan, home);
  if (plan.home >= 0 && exists(&plan, "finished")) text_field(answer, "whole");
  /* A plan is written whole or not at all: without a plan file the change never began. */
  else if (plan.home >= 0 && !exists(&plan, "plan")) text_field(answer, "back");
  else if (wrong == NULL) recover(&plan, answer);
  else {
    text_field(answer, "stuck");
    text_field(answer, wrong);
  }
  plan_close(&plan);
}
