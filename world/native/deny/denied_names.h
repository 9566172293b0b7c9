/* Keeps denied names denied for as long as the world lives: a first scan of all writable trees, then
   inotify(7) events for new names. No folder is read again for a command. */
#ifndef SUBSTRATE_DENY_DENIED_NAMES_H
#define SUBSTRATE_DENY_DENIED_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Runs the first scan, after the pivot, with full capabilities. `settled` says whether every process belongs
   to a command. `pins`: pin the folders above hidden names over an overlay too, because commands can bind folders
   elsewhere: a hidden name moved into such a folder would be shown there. */
void names_start(bool (*settled)(void), bool pins);
/* True when PID 1 must keep the right to mount, because denied names may appear later. */
bool names_guarded(void);
/* Adds the inotify instance to epoll. */
void names_listen(void);
/* Takes all events so far, and scans folders without a watch. */
void names_look(void);
/* Does names_look, and reports names made by commands. Call before a command begins, before its end is
   reported, and before the world's end. */
void names_settle(void);
/* Takes pending inotify events, without a scan. */
void names_hear(void);
/* Does the same before a call that may create a name is answered: the events of this call come later. */
void names_hear_before(pid_t task);
/* Checks calls in progress when due. Returns microseconds until the next check, -1: no check needed. */
int64_t names_next_look_us(void);

/* True when PID 1 must refuse to create this missing absolute path: a sealed name that a person's git folder
   lacks. */
bool names_refuse(const char *path);
/* True when PID 1 itself must refuse commands this existing absolute path, a file that its mount denies: where a
   person's git or editor replaces the file between PID 1's look and the call, the mount goes with the old file. */
bool names_hold(const char *path);
/* True when the broker creates such a missing name for a command, after judging the command's content. */
bool names_ask_about_missing(const char *path);

/* True when no process of a command is left: no command can have caused the current state or hold a file
   open. */
bool names_nobody_runs(void);

/* Frees the inotify instance of an idle world. Returns milliseconds until the next check, -1: no check
   needed. */
int names_check_idle(void);

/* Returns the number of folders without a watch because of a host limit. */
size_t names_unwatched(void);

#endif
