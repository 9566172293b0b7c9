#include "run/last_look.h"

#include "deny/denied_names.h"
#include "deny/late_names.h"
#include "deny/new_repositories.h"
#include "lib/failure.h"
#include "run/children.h"

static void look(void) {
  children_end_all();
  names_settle();
}

/* Renames the names where they are, for nobody would hear of them: names told already too, since the broker may not have read
   of them. Git folders of commands too: nobody has judged what their hooks and settings run. */
static void look_alone(void) {
  const char *folder;
  late_names_be_alone();
  look();
  for (int at = 0; (folder = new_repository_at(at)) != NULL; at++) late_name_tell(folder, 0);
}

void last_look_arm(void) {
  if (names_guarded()) world_on_end(look, look_alone);
}
