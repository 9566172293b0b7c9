/** Programs that make namespaces of their own, for legitimate ends and as attacks. */

/** Enters namespaces, and maps the user to `inside`. `say` prints what came of a call. */
const COMMON = `
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static int say(const char *what, int result) {
  printf("%s: %s\\n", what, result < 0 ? strerror(errno) : "ok");
  fflush(stdout);
  return result;
}
static int put(const char *path, const char *text) {
  int file = open(path, O_WRONLY);
  int result = file < 0 || write(file, text, strlen(text)) < 0 ? -1 : 0;
  if (file >= 0) close(file);
  return result;
}
static void read_out(int folder, const char *path) {
  char text[64] = "";
  int file = openat(folder, path, O_RDONLY);
  ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
  printf("read %s: %s\\n", path, length < 0 ? "nothing" : text);
  if (file >= 0) close(file);
}
static int map(unsigned uid, unsigned gid, int as_root) {
  char line[64];
  if (put("/proc/self/setgroups", "deny") < 0) return -1;
  snprintf(line, sizeof line, "%u %u 1", as_root ? 0 : uid, uid);
  if (put("/proc/self/uid_map", line) < 0) return -1;
  snprintf(line, sizeof line, "%u %u 1", as_root ? 0 : gid, gid);
  return put("/proc/self/gid_map", line);
}
`;

/** Starts a process as Chromium's sandbox does: three namespaces by clone(2), its own user mapped, and an empty root. */
export const CHROMIUM = `${COMMON}
static int empty_root(void *nothing) {
  return nothing != NULL || chroot("/proc/self/fdinfo/") < 0 || chdir("/") < 0;
}
int main(void) {
  static char stack[65536];
  unsigned uid = getuid(), gid = getgid();
  int status;
  pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0);
  if (pid < 0) return say("clone", -1), 1;
  if (pid > 0) return waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) ? 1 : WEXITSTATUS(status);
  if (say("map", map(uid, gid, 0)) < 0) return 2;
  pid_t helper = clone(empty_root, stack + sizeof stack, CLONE_FS | SIGCHLD, NULL);
  if (waitpid(helper, &status, 0) < 0 || status != 0) return 3;
  printf("pid %d, uid %u, passwd %s\\n", getpid(), getuid(), access("/etc/passwd", F_OK) == 0 ? "there" : "gone");
  return 0;
}
`;

/**
 * In a world that hides \`secret\` and \`d/e/key\` and seals \`sealed\`: binds what it may, detaches its copy of the world's mounts as
 * bubblewrap does, and tries to move the hidden names into folders that it has bound before.
 */
export const DETACHER = `${COMMON}
static void bind_to(const char *from, const char *to) {
  mkdir(to, 0700);
  say(to, mount(from, to, NULL, MS_BIND, NULL));
}
int main(int count, char **words) {
  static char layers[9000], here[4096];
  unsigned uid = getuid(), gid = getgid();
  int slave = count > 1 && strcmp(words[1], "slave") == 0;
  if (getcwd(here, sizeof here) == NULL || say("unshare", unshare(CLONE_NEWUSER | CLONE_NEWNS)) < 0) return 1;
  if (say("map", map(uid, gid, 1)) < 0) return 1;
  say("propagation", mount(NULL, "/", NULL, MS_REC | (slave ? MS_SLAVE : MS_PRIVATE), NULL));
  int project = open(".", O_PATH | O_DIRECTORY), d = open("d", O_PATH | O_DIRECTORY), e = open("d/e", O_PATH | O_DIRECTORY);
  say("uncover secret", umount2("secret", MNT_DETACH));
  say("uncover key", umount2("d/e/key", 0));
  say("open seal", mount(NULL, "sealed", NULL, MS_REMOUNT | MS_BIND, NULL));
  say("tmpfs", mount("t", "/tmp", "tmpfs", 0, NULL));
  mkdir("/tmp/old", 0700);
  bind_to("room", "/tmp/room");
  bind_to("d/room", "/tmp/room2");
  bind_to("d/e/room", "/tmp/room3");
  bind_to(".", "/tmp/whole");
  bind_to("d/e", "/tmp/whole3");
  mkdir("/tmp/upper", 0700);
  mkdir("/tmp/work", 0700);
  mkdir("/tmp/merged", 0700);
  snprintf(layers, sizeof layers, "lowerdir=%s,upperdir=/tmp/upper,workdir=/tmp/work,userxattr", here);
  say("overlay", mount("o", "/tmp/merged", "overlay", 0, layers));
  read_out(AT_FDCWD, "/tmp/merged/secret");
  say("pivot", (int)syscall(SYS_pivot_root, "/tmp", "/tmp/old"));
  say("chdir", chdir("/"));
  say("detach", umount2("/old", MNT_DETACH));
  say("move secret", renameat(project, "secret", project, "room/secret"));
  say("move d", renameat(project, "d", project, "room/d"));
  say("move d/e", renameat(d, "e", d, "room/e"));
  say("move key", renameat(e, "key", e, "room/key"));
  say("exchange", (int)syscall(SYS_renameat2, project, "secret", project, "plain", 2));
  say("remove secret", unlinkat(project, "secret", 0));
  say("link secret", linkat(project, "secret", project, "room/linked", 0));
  say("move sealed", renameat(project, "sealed", project, "room/sealed"));
  say("write sealed", openat(project, "sealed", O_WRONLY));
  const char *const places[] = {"/room/secret", "/room/d/e/key", "/room2/e/key", "/room3/key", "/room/linked", "/whole/secret", "/merged/secret"};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) read_out(AT_FDCWD, places[i]);
  read_out(project, "secret");
  read_out(e, "key");
  say("remove the root", umount2("/", MNT_DETACH));
  mkdir("/second", 0700);
  mount("t", "/second", "tmpfs", 0, NULL);
  mkdir("/second/old", 0700);
  say("pivot again", (int)syscall(SYS_pivot_root, "/second", "/second/old"));
  read_out(AT_FDCWD, "/../keeper/etc/passwd");
  return 0;
}
`;

/** Mounts every file system that it may, and tries what an owner of one's own user namespace might do to the machine. */
export const MOUNTER = `${COMMON}
#include <linux/netlink.h>
int main(int count, char **words) {
  static const char *const types[] = {"sysfs", "cgroup2", "cgroup", "devtmpfs", "debugfs", "securityfs", "tracefs", "bpf", "ext4", "fuse"};
  unsigned uid = getuid(), gid = getgid();
  int all = count > 1 && strcmp(words[1], "all") == 0;
  if (say("unshare", unshare(CLONE_NEWUSER | CLONE_NEWNS | (all ? CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC : 0))) < 0) return 1;
  if (say("map", map(uid, gid, 1)) < 0) return 1;
  pid_t child = all ? fork() : 0;
  if (child > 0) return waitpid(child, NULL, 0) < 0;
  mkdir("/tmp/m", 0700);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) say(types[i], mount("x", "/tmp/m", types[i], 0, NULL));
  say(all ? "own proc" : "proc", mount("x", "/tmp/m", "proc", 0, NULL));
  say("core_pattern", put("/tmp/m/sys/kernel/core_pattern", "|/x"));
  say("sysrq", put("/tmp/m/sysrq-trigger", "h"));
  say("core_pattern of the world", put("/proc/sys/kernel/core_pattern", "|/x"));
  say("uncover /proc/sys", umount2("/proc/sys", MNT_DETACH));
  say("open /proc/sys", mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL));
  say("open /", mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL));
  say("disk", mknod("/tmp/disk", S_IFBLK | 0600, 8 << 8));
  say("nested cgroup namespace", unshare(CLONE_NEWCGROUP));
  say("hostname", sethostname("x", 1));
  int inet = socket(AF_INET, SOCK_DGRAM, 0);
  say("iptables", setsockopt(inet, 0, 64, "", 0));
  say("nftables", socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER));
  say("packet", socket(AF_PACKET, SOCK_RAW, 0));
  say("io_uring", (int)syscall(SYS_io_uring_setup, 1, NULL));
  say("keyctl", (int)syscall(SYS_keyctl, 0, -4, 1));
  say("bpf call", (int)syscall(SYS_bpf, 0, NULL, 0));
  return 0;
}
`;
