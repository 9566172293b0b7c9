#ifndef SUBSTRATE_CHANGES_HELD_SCAN_H
#define SUBSTRATE_CHANGES_HELD_SCAN_H

#include <stddef.h>

#include "changes/held_marks.h"
#include "changes/held_paths.h"
#include "changes/held_text.h"

/* What the upper layer `upper` changes in `project` (folders that are open), as rows of six fields each:
   kind, path, flags, why it cannot be applied or nothing, how it is above, how it is below.
   Kinds: f d l (files, folders, links), w (gone), x (anything else), and `.` for what lies below something that goes.
   Flags: o hides the folder below, n there is nothing below its folder, i follows from that its folder hides what is below,
   a attributes differ, t mtime differs, c content differs, g it was copied up, G from another inode than what is there. */
int scan_changes(int upper, int project, struct text *rows);

#endif
