#ifndef HELD_PARENTS_H
#define HELD_PARENTS_H

/* The folder that was opened last: most steps follow others in the same one. */
struct parents {
  int root, fd;
  char *path;
};

/* As `open_parent_of`; the descriptor stays the cache's, and open until the next call. */
int parents_open(struct parents *parents, const char *path, const char **name);
void parents_end(struct parents *parents);

#endif
