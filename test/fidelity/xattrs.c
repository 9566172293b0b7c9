// Reads paths, each ended by NUL, from its input; prints a line for each: `name=hexadecimal value`, separated by tabs.
// Links are not followed. A file system without extended attributes has none.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

// The kernel's own limits: XATTR_LIST_MAX and XATTR_SIZE_MAX (linux/limits.h).
static char names[65536];
static unsigned char value[65536];

static int fail(const char *what, const char *path) {
	fprintf(stderr, "%s '%s': %s\n", what, path, strerror(errno));
	return 1;
}

static int print_attribute(const char *path, const char *name) {
	ssize_t size = lgetxattr(path, name, value, sizeof value);
	if (size < 0) {
		return fail(name, path);
	}
	printf("%s=", name);
	for (ssize_t i = 0; i < size; i++) {
		printf("%02x", value[i]);
	}
	putchar('\t');
	return 0;
}

static int print_path(const char *path) {
	ssize_t length = llistxattr(path, names, sizeof names);
	if (length < 0 && errno != ENOTSUP) {
		return fail("llistxattr", path);
	}
	for (ssize_t at = 0; at < length; at += (ssize_t)strlen(names + at) + 1) {
		if (print_attribute(path, names + at) != 0) {
			return 1;
		}
	}
	putchar('\n');
	return 0;
}

int main(void) {
	char *path = NULL;
	size_t room = 0;
	while (getdelim(&path, &room, '\0', stdin) > 0) {
		if (print_path(path) != 0) {
			return 1;
		}
	}
	free(path);
	return ferror(stdin) ? fail("read", "stdin") : 0;
}
