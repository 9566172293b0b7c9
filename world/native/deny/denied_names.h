/* Keeps denied names denied for as long as the world lives: a first look at everything that may be written,
   then notifications of what turns up (inotify(7)). No folder is read again for a command. */
#ifndef SUBSTRATE_DENY_DENIED_NAMES_H
#define SUBSTRATE_DENY_DENIED_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* After the pivot, with full capabilities: the first look. `settled` says whether nothing can be alive that belongs to no command. */
void names_start(bool (*settled)(void));
/* True when PID 1 must stay able to mount: names may turn up. */
bool names_guarded(void);
/* Listens in the epoll. */
void names_listen(void);
/* Takes what has happened so far; what is not watched, for want of watches, is looked through. */
void names_look(void);
/* And tells of what commands made. Before a command begins, before its end is told, and before the world's own. */
void names_settle(void);
/* What the kernel told, without looking anywhere else. */
void names_hear(void);
/* The same, before a call that may make a name is answered: what it makes is told after this. */
void names_hear_before(pid_t task);
/* Looks at calls in progress when that is due. Microseconds until it wants to be asked again, -1: not by itself. */
int64_t names_next_look_us(void);

/* Whether a call that would make the name at this absolute path, where nothing stands, is to be refused before it is carried out: a
   sealed name that a git folder of a person's lacks. */
bool names_refuse(const char *path);
/* Whether such a name is one that the broker makes for a command when it has judged what the command would put there. */
bool names_ask_about_missing(const char *path);

/* Whether no process of a command is left: nobody inside can have done what is seen now, or holds anything open. */
bool names_nobody_runs(void);

/* Gives the notifications of an idle world back. Milliseconds until it wants to be asked again, -1: not by itself. */
int names_check_idle(void);

/* Folders that are not watched because one of the host's limits was reached. */
size_t names_unwatched(void);

#endif
