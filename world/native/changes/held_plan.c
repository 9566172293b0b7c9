/* Reads the plan of a change, written by the broker: a header, then rows of five fields. */
#define _GNU_SOURCE
#include "changes/held_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC "substrate-held 1"
#define FOLDER (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

static bool path_is_plain(const char *path) {
  if (*path == 0) return true;
  for (const char *part = path;; part++) {
    size_t length = strcspn(part, "/");
    if (length == 0 || (length == 1 && part[0] == '.') || (length == 2 && part[0] == '.' && part[1] == '.')) return false;
    part += length;
    if (*part == 0) return true;
  }
}

static const char KINDS[] = {STEP_PUT, STEP_INTO, STEP_TAKE, STEP_ATTRIBUTES, 0};
static const char HOWS[] = {HOW_WHOLE, HOW_ALONE, HOW_TIMES, HOW_NOTHING, 0};

static bool is_one_of(char letter, const char *letters) {
  return letter != 0 && strchr(letters, letter) != NULL;
}

static bool read_step(struct text_reader *reader, struct step *step, size_t number) {
  const char *word = text_next(reader);
  const char *path = text_next(reader), *source = text_next(reader), *expect = text_next(reader);
  if (word == NULL || path == NULL || source == NULL || expect == NULL || strlen(word) != 2) return false;
  if (!is_one_of(word[0], KINDS) || !is_one_of(word[1], HOWS)) return false;
  *step = (struct step){.kind = (enum step_kind)word[0], .how = (enum step_how)word[1], .path = path, .source = source};
  snprintf(step->name, sizeof step->name, "%zu", number);
  if (*path == 0 && step->kind != STEP_ATTRIBUTES) return false;
  return path_is_plain(path) && path_is_plain(source) && sight_read(expect, &step->expect);
}

static bool read_steps(struct plan *plan, struct text_reader *reader) {
  size_t room = 0;
  while (reader->at < reader->end) {
    if (plan->count == room) {
      room = room * 2 + 64;
      plan->steps = held_grow(plan->steps, room * sizeof *plan->steps);
    }
    struct step *step = &plan->steps[plan->count];
    if (!read_step(reader, step, plan->count)) return false;
    bool follows_put = plan->count > 0 && (step[-1].kind == STEP_PUT || step[-1].kind == STEP_INTO);
    if (step->kind == STEP_INTO && !follows_put) return false;
    plan->count++;
  }
  return true;
}

static const char *read_plan(struct plan *plan) {
  if (text_read(&plan->text, plan->home, "plan") < 0) return strerror(errno);
  struct text_reader reader = {plan->text.data, plan->text.data + plan->text.length};
  const char *magic = text_next(&reader);
  if (magic == NULL || strcmp(magic, MAGIC) != 0) return "the plan was written by another version of Substrate";
  plan->project_path = text_next(&reader);
  const char *seen = text_next(&reader);
  plan->layers_path = text_next(&reader);
  plan->stage_name = text_next(&reader);
  const char *keeps = text_next(&reader);
  if (keeps == NULL || strchr(plan->stage_name, '/') != NULL || plan->stage_name[0] != '.') return "the plan is incomplete";
  plan->keeps = strcmp(keeps, "keep") == 0;
  if (!sight_read(seen, &plan->project_seen) || !read_steps(plan, &reader)) return "the plan is malformed";
  return NULL;
}

const char *plan_open(struct plan *plan, const char *home) {
  struct stat status;
  *plan = (struct plan){.home = -1, .layers = -1, .project = -1, .place = -1, .stage = -1, .made = -1, .old = -1};
  plan->home = open(home, FOLDER);
  if (plan->home < 0) return strerror(errno);
  const char *wrong = read_plan(plan);
  if (wrong != NULL) return wrong;
  plan->layers = open(plan->layers_path, FOLDER);
  if (plan->layers < 0) return "the folder with the held changes is gone";
  plan->project = open(plan->project_path, FOLDER);
  if (plan->project < 0 || fstat(plan->project, &status) < 0) return "the project is gone";
  if (status.st_ino != plan->project_seen.inode) return "the project's path now leads to another folder";
  return NULL;
}

static void close_if(int fd) {
  if (fd >= 0) close(fd);
}

void plan_close(struct plan *plan) {
  close_if(plan->home);
  close_if(plan->layers);
  close_if(plan->project);
  close_if(plan->place);
  close_if(plan->stage);
  close_if(plan->made);
  close_if(plan->old);
  free(plan->steps);
  text_clear(&plan->text);
}
