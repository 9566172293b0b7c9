/* Patterns of denied names over path segments, as an automaton: a walk down the tree carries a set of states.
   Pure but for memory, which is never freed: folders share state sets, so sets are few. */
#ifndef SUBSTRATE_DENY_RULES_H
#define SUBSTRATE_DENY_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of denial, as bits. */
#define DENY_READ 1U
#define DENY_WRITE 2U
#define DENY_HOST 4U /* reading, outside the writable trees: hidden by a whiteout */
#define DENY_SEAL 8U /* writing, unless a command made the name */
#define DENY_REPOSITORY 16U /* denies nothing by itself: marks a git folder; in a pre-existing git folder,
                               missing names are sealed too */
#define DENY_ASKS 32U /* denies nothing by itself: marks a sealed file; the broker decides on a command's
                         replacement */
#define DENY_FOLDER_LINK 64U /* set by no rule: a link in the place of a folder with denied names; ignored
                                once the link is gone */
#define DENY_JUDGED 128U /* set by no rule: sealed in place; the broker removes the parts that run code */
#define DENY_IN_ROOTS (DENY_READ | DENY_WRITE | DENY_SEAL | DENY_REPOSITORY)
#define DENY_OF_SEALS (DENY_SEAL | DENY_REPOSITORY | DENY_ASKS)

struct rule_state {
  uint16_t rule, segment;
};

struct rule_states {
  uint32_t count;
  bool listed; /* some next segment is not a literal: the folder must be listed */
  unsigned denies; /* union of the rules' bits */
  struct rule_states *next;
  struct rule_state at[];
};

/* Takes a DENY field: "r", "w", "h", "s", "g" or "c" (as "s", plus DENY_ASKS), then the segments of an
   absolute path, each after a NUL: L and a literal name, G and a pattern of fnmatch(3), D for any number of
   folders, T for any number of folders of a working tree, excluding git folders and installed packages
   (node_modules). Returns NULL or the error. */
const char *rules_add(const uint8_t *data, size_t length);
/* Returns the states before the first segment of every rule of these kinds. NULL: no such rule. */
const struct rule_states *rules_begin(unsigned kinds);
/* Steps down to `name`. NULL: no rule can match below. `matched` receives the bits of rules that end at this
   name. */
const struct rule_states *rules_step(const struct rule_states *from, const char *name, unsigned *matched);
/* Returns the bits of rules that end at this name. Cheaper than a step, for names of files. */
unsigned rules_match(const struct rule_states *from, const char *name);
/* Returns the bits of rules that have this name, spelled or by `*`, as a folder above denied names. A link with this
   name would give those denied names to the files in its target. Not by `**`: every link could be above such a name. */
unsigned rules_through(const struct rule_states *from, const char *name);
/* True when the last segment of a rule of these kinds matches: a cheap filter that most names fail. */
bool rules_may_end(unsigned kinds, const char *name);
/* Iterates over the literal last segments of the rules of a kind, from `*at` = 0. NULL at the end. */
const char *rules_next_end(unsigned kind, uint16_t *at);
/* Returns the literal next segment of state `number`. NULL: not a literal, or the same as an earlier
   state's. */
const char *rules_literal(const struct rule_states *from, uint32_t number);

#endif
