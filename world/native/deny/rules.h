/* Denied names: patterns of path segments, and an automaton over them: a walk down the tree carries the set of states that it is in.
   Pure but for memory, which is never given back: sets are few, since folders share them. */
#ifndef SUBSTRATE_DENY_RULES_H
#define SUBSTRATE_DENY_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a rule denies, as bits. */
#define DENY_READ 1U
#define DENY_WRITE 2U
#define DENY_HOST 4U /* reading, outside of what may be written: hidden by a whiteout */
#define DENY_SEAL 8U /* writing, unless a command made the name */
#define DENY_REPOSITORY 16U /* nothing: a git folder, whose seals hold for what is missing in it too where it was there before */
#define DENY_ASKS 32U /* nothing: a sealed file, and the broker is asked about what a command would put in its place */
#define DENY_FOLDER_LINK 64U /* of no rule: a link in the place of a folder of denied names, and nothing while it is none */
#define DENY_JUDGED 128U /* of no rule: sealed where it stands, and the broker takes out what of it runs code */
#define DENY_IN_ROOTS (DENY_READ | DENY_WRITE | DENY_SEAL | DENY_REPOSITORY)
#define DENY_OF_SEALS (DENY_SEAL | DENY_REPOSITORY | DENY_ASKS)

struct rule_state {
  uint16_t rule, segment;
};

struct rule_states {
  uint32_t count;
  bool listed; /* some next segment is no literal: the folder's names must be read */
  unsigned denies; /* what its rules deny, together */
  struct rule_states *next;
  struct rule_state at[];
};

/* Takes a DENY field: "r", "w", "h", "s", "g" or "c" (as "s", and DENY_ASKS), then the segments of an absolute path, each after a NUL: L and a
   literal name, G and a pattern of fnmatch(3), D for any number of folders, T for any number of folders of a working
   tree, which git folders and installed packages (node_modules) are not. NULL, or what is wrong. */
const char *rules_add(const uint8_t *data, size_t length);
/* Before the first segment of every rule of these kinds. NULL: there is none. */
const struct rule_states *rules_begin(unsigned kinds);
/* One name further down. NULL: no rule can match below. `matched` gets what is denied at that name itself. */
const struct rule_states *rules_step(const struct rule_states *from, const char *name, unsigned *matched);
/* What is denied at that name itself. Cheaper than a step: for what is no folder. */
unsigned rules_match(const struct rule_states *from, const char *name);
/* What is denied below that name by rules that spell it as one of their folders. Who makes it a link gives everything that the link leads to
   those denied names. */
unsigned rules_through(const struct rule_states *from, const char *name);
/* Whether any rule of these kinds ends with a name like this one: most names are told apart by it. */
bool rules_may_end(unsigned kinds, const char *name);
/* The literal last names of the rules of a kind, one call after the other from `*at` = 0. NULL: there are no more. */
const char *rules_next_end(unsigned kind, uint16_t *at);
/* The next name that state `number` wants literally; NULL: none, or an earlier state wants the same one. */
const char *rules_literal(const struct rule_states *from, uint32_t number);

#endif
