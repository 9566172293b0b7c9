#ifndef SUBSTRATE_CHANGES_HELD_SCAN_H
#define SUBSTRATE_CHANGES_HELD_SCAN_H

#include <stddef.h>

#include "changes/held_marks.h"
#include "changes/held_paths.h"
#include "changes/held_text.h"

/* Lists the changes of the upper layer `upper` against `project` (open folders), as rows of six fields: kind,
   path, flags, reason why the change cannot be applied or empty, upper state, lower state.
   Kinds: f d l (files, folders, links), w (removed), x (other types), and `.` for entries below a removed
   folder.
   Flags: o hides the lower folder, n has no lower parent folder, i removed because its parent folder hides
   the lower folder, a attributes differ, t mtime differs, c content differs, g was copied up, G was copied up
   from another inode than the present lower inode. */
int scan_changes(int upper, int project, struct text *rows);

#endif
