/**
 * Ways to start expr(1) that do not say so: each prints 2, or expr's own complaint, when it starts. Run by sh in a folder of
 * their own, in which anything may be removed.
 */
export const DISGUISES: readonly (readonly [what: string, cmd: string])[] = [
  ["a symlink", "ln -sf /usr/bin/expr l; ./l 1 + 1"],
  [
    "a symlink to a symlink in another folder",
    "ln -sf /usr/bin/expr l; mkdir -p d; ln -sf ../l d/m; d/m 1 + 1",
  ],
  ["a copy by another name", "cp /usr/bin/expr c; ./c 1 + 1"],
  ["a copy in the world's /tmp", "cp /usr/bin/expr /tmp/c; /tmp/c 1 + 1"],
  ["a hard link to a copy", "cp /usr/bin/expr c; ln -f c h; ./h 1 + 1"],
  ["a copy that is closed to readers", "cp /usr/bin/expr c; chmod 111 c; ./c 1 + 1"],
  ["another argv[0]", "bash -c 'exec -a harmless /usr/bin/expr 1 + 1'"],
  ["/proc/self/root", "/proc/self/root/usr/bin/expr 1 + 1"],
  ["/proc/self/fd", "exec 7< /usr/bin/expr; /proc/self/fd/7 1 + 1"],
  ["/dev/fd of a copy that is gone", "cp /usr/bin/expr c; exec 7< c; rm c; /dev/fd/7 1 + 1"],
  [
    "an interpreter line",
    'printf \'#!/usr/bin/expr\' > 1; chmod +x 1; python3 -c \'import os; os.execv("1", ["1", "+", "1"])\'',
  ],
  [
    "an interpreter line of an interpreter line",
    "printf '#!/usr/bin/expr' > s; printf '#!./s' > t; chmod +x s t; ./t",
  ],
  [
    "the dynamic loader",
    "$(ls /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1 2>/dev/null) /usr/bin/expr 1 + 1",
  ],
  [
    "a copy of the dynamic loader, with options, and a copy",
    "cp $(ls /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1 2>/dev/null) ./x; cp /usr/bin/expr c; ./x --inhibit-cache --argv0 a ./c 1 + 1",
  ],
  ["env -i", "env -i /usr/bin/expr 1 + 1"],
  ["xargs", "echo 1 + 1 | xargs expr"],
  ["find -exec", "touch f; find f -exec expr 1 + 1 ';'"],
  ["python", `python3 -c 'import os; os.execv("/usr/bin/expr", ["x", "1", "+", "1"])'`],
  [
    "python's descriptors",
    `python3 -c 'import os; os.execve(os.open("/usr/bin/expr", 0), ["x", "1", "+", "1"], {})'`,
  ],
  ["perl", `perl -e 'exec {"/usr/bin/expr"} "x", 1, "+", 1'`],
  ["node", `node -e 'process.stdout.write(require("child_process").execFileSync("expr", ["1", "+", "1"]))'`],
  ["make", "printf 'a:\\n\\t@expr 1 + 1\\n' > Makefile; make -s"],
  [
    "a thread",
    `python3 -c 'import threading, os; threading.Thread(target=lambda: os.execv("/usr/bin/expr", ["x", "1", "+", "1"])).start()'`,
  ],
  [
    "the dynamic loader, and a copy that may not be run by itself",
    "cp /usr/bin/expr c; chmod 644 c; $(ls /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1 2>/dev/null) ./c 1 + 1",
  ],
  [
    "/dev/fd of a copy whose other name is left",
    "cp /usr/bin/expr c; ln c d; exec 7< c; rm c; /dev/fd/7 1 + 1",
  ],
  [
    "a copy below a folder whose path is nearly too long",
    `python3 -c '
import os
while (left := 4080 - len(os.getcwd())) > 1:
    name = "d" * min(200, left - 1)
    os.mkdir(name)
    os.chdir(name)
os.system("cp /usr/bin/expr ./" + "c" * 40)
os.execv("./" + "c" * 40, ["x", "1", "+", "1"])'`,
  ],
  [
    "an interpreter line that is mapped into a file that was none",
    `python3 -c '
import mmap, os, time
os.chdir("/tmp")
os.system("cp /usr/bin/true 1")
file = os.open("1", os.O_RDWR)
page = mmap.mmap(file, 4096)
page[0] = page[0]
time.sleep(0.2)
if os.spawnv(os.P_WAIT, "1", ["x"]) != 127: raise SystemExit("It started")
page[0:16] = b"#!/usr/bin/expr\\n"
page.close()
os.close(file)
os.execv("1", ["1", "+", "1"])'`,
  ],
];

/** Starts it with words in the two registers by which a runner of substrate-init makes its own start known. */
export const OWN_WORDS = `cat > raw.c << 'END'
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
  char *argv[] = {"expr", "1", "+", "1", NULL};
  for (long one = -1; one < 2; one++)
    for (long other = -1; other < 2; other++) syscall(SYS_execve, "/usr/bin/expr", argv, NULL, one, other);
  return 0;
}
END
cc -o raw raw.c && ./raw`;
