import type { Workload } from "../workload.ts";

/** Processes, terminals, sockets, watchers, and tools that look at them. */
export const PROCESSES: readonly Workload[] = [
  {
    name: "a server on a port below 1024",
    needs: ["python3"],
    command:
      'python3 -c \'import socket\ns = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", 83)); s.listen(); print("listens")\'; echo $?',
    varies: { output: [[/ {2}File .*\n.*\n/g, ""]] },
  },
  {
    name: "ps sees the command's own processes",
    needs: ["ps"],
    command:
      "exec 2> /dev/null; sleep 9 & p=$!; until [ $(ps -o comm= -p $p) = sleep ]; do sleep 0.05; done; sleep 0.3; ps -o comm= -p $p; ps -o stat= -p $p | cut -c1; kill $p; wait $p; echo $?; ps -o nice= -p $$; [ $(ps -o ppid= -p $(sh -c 'echo $PPID')) -ge 0 ] && echo parent",
  },
  {
    name: "pgrep and pkill of one's own children",
    needs: ["pgrep", "pkill"],
    command:
      "sleep 30 & sleep 31 & until [ $(pgrep -c -P $$ sleep) = 2 ]; do sleep 0.05; done; pgrep -c -P $$ sleep; pkill -P $$ -o sleep; until [ $(pgrep -c -P $$ sleep) = 1 ]; do sleep 0.05; done; pgrep -a -P $$ sleep | cut -d' ' -f2-; pkill -P $$ sleep; wait; echo $?",
  },
  {
    name: "setsid, and a process group that is signalled",
    needs: ["setsid"],
    command:
      "setsid sh -c 'echo $(($$ == $(ps -o sid= -p $$)))'; setsid -w sh -c 'trap \"echo caught; exit 4\" TERM; kill -TERM -$$; sleep 1'; echo $?",
  },
  {
    name: "script gives a terminal",
    quick: "at length",
    needs: ["script"],
    command:
      "script -qec 'tty | sed s/[0-9]*$//; test -t 1 && echo terminal; stty size; tput cols' /dev/null; script -qc 'exit 6' log; echo $?; head -1 log | cut -c1-14",
    varies: { content: [/\/log$/] },
  },
  {
    name: "python's pty",
    needs: ["python3"],
    command:
      'python3 -c \'import pty, os; print(os.waitstatus_to_exitcode(pty.spawn(["sh", "-c", "tty | cut -c1-9; echo typed; exit 3"])))\' < /dev/null',
  },
  {
    name: "expect",
    strictest: "claude-code",
    needs: ["expect"],
    command:
      'expect -c \'set timeout 5; spawn sh -c {printf "name? "; read n; echo "hello $n"}; expect "name? "; send "you\\r"; expect "hello you"; expect eof; lassign [wait] p s o c; exit $c\'',
  },
  {
    name: "tmux runs a command in a session",
    needs: ["tmux"],
    command:
      "export TMUX_TMPDIR=$PWD; tmux -f /dev/null new-session -d -x 80 -y 24 'echo inside > out; sleep 5'; until [ -s out ]; do sleep 0.05; done; tmux list-sessions -F '#{session_windows}'; tmux kill-server; cat out",
    varies: { paths: [/\/tmux-/] },
  },
  {
    name: "a Unix socket in the project",
    quick: "at length",
    needs: ["python3"],
    files: {
      "s.py":
        "import socket, threading\ns = socket.socket(socket.AF_UNIX); s.bind('sock'); s.listen()\ndef serve():\n    c, _ = s.accept(); c.sendall(c.recv(99).upper()); c.close()\nt = threading.Thread(target=serve); t.start()\nc = socket.socket(socket.AF_UNIX); c.connect('sock'); c.sendall(b'word'); print(c.recv(99)); t.join()\n",
    },
    command: "python3 s.py; [ -S sock ] && stat -c '%F %a' sock",
  },
  {
    name: "a server and a client on 127.0.0.1 and ::1",
    quick: true,
    needs: ["python3"],
    files: {
      "s.py":
        "import socket, threading\nfor family, host in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):\n    s = socket.socket(family); s.bind((host, 0)); s.listen()\n    c = socket.create_connection((host, s.getsockname()[1])); p, _ = s.accept()\n    c.sendall(b'x' * 100000); c.shutdown(1)\n    n = 0\n    while b := p.recv(65536): n += len(b)\n    print(host, n)\nu = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('127.0.0.1', 0)); u.sendto(b'dgram', u.getsockname()); print(u.recv(9))\nprint(socket.gethostbyname('localhost'), socket.getaddrinfo('localhost', 80, type=socket.SOCK_STREAM)[-1][4][0])\n",
    },
    command: "python3 s.py",
  },
  {
    name: "curl of a server that the command started",
    needs: ["curl", "python3"],
    command:
      "echo body > f; python3 -m http.server 8123 --bind 127.0.0.1 > log 2>&1 & p=$!; for i in 1 2 3 4 5 6 7 8 9 10; do curl -sf http://localhost:8123/f && break; sleep 0.2; done; curl -s -o out -w '%{http_code}\\n' http://127.0.0.1:8123/none; { kill $p; wait $p; } 2> /dev/null; curl -s http://127.0.0.1:8123/; echo $?; curl -s file://$PWD/f",
    varies: { content: [/\/log$/, /\/out$/] },
  },
  {
    name: "wget of a server that the command started",
    needs: ["wget", "python3"],
    command:
      "mkdir www; echo body > www/f; python3 -m http.server 8124 -d www --bind 127.0.0.1 > /dev/null 2>&1 & p=$!; for i in $(seq 50); do wget -q http://127.0.0.1:8124/f && break; sleep 0.2; done; cat f; wget -q http://127.0.0.1:8124/none; echo $?; kill $p",
  },
  {
    name: "inotifywait sees what the command itself does",
    needs: ["inotifywait"],
    command:
      "inotifywait -q -m -e create,close_write,moved_to,delete --format '%e %f' d > log & p=$!; sleep 0.5; echo x > d/a; mv d/a d/b; rm d/b; mkdir d/c; sleep 0.3; kill $p; cat log",
    prepare: "mkdir d",
  },
  {
    name: "node's fs.watch sees what the command itself does",
    needs: ["node"],
    files: {
      "w.mjs":
        "import { watch, writeFileSync, renameSync, mkdirSync } from 'node:fs';\nmkdirSync('d'); const seen = new Set();\nwatch('d', (e, f) => seen.add(`${e} ${f}`));\nsetTimeout(() => { writeFileSync('d/a', 'x'); renameSync('d/a', 'd/b'); }, 50);\nsetTimeout(() => { console.log([...seen].sort().join('\\n')); process.exit(); }, 300);\n",
    },
    command: "node w.mjs",
  },
  {
    name: "a watcher in the command sees an editor's save on the host",
    quick: "at length",
    needs: ["node"],
    files: {
      "w.mjs":
        "import { watch, readFileSync, writeFileSync } from 'node:fs';\nwatch('.', (_e, f) => { if (f === 'edited' ) { const t = readFileSync('edited', 'utf8'); if (t === 'new\\n') { console.log('saw', t); process.exit(); } } });\nwriteFileSync('ready', 'yes\\n');\nsetTimeout(() => process.exit(9), 15000);\n",
      edited: "old\n",
    },
    command: "node w.mjs",
    meanwhile: [
      { seen: "ready", until: /yes/ },
      { write: "edited", text: "new\n" },
    ],
  },
  {
    name: "inotifywait sees an editor's save on the host",
    needs: ["inotifywait"],
    files: { edited: "old\n" },
    command:
      "(sleep 0.7; echo yes > ready) & inotifywait -q -t 15 -e close_write --format '%w' edited; cat edited; wait",
    meanwhile: [
      { seen: "ready", until: /yes/ },
      { write: "edited", text: "new\n" },
    ],
  },
  {
    name: "tail -f follows a file that grows",
    command:
      "touch log; (for i in 1 2 3; do sleep 0.1; echo $i; done >> log; sleep 1; kill $(cat pid)) & tail -n +1 -f log & echo $! > pid; wait; echo over",
    varies: { content: [/\/pid$/] },
  },
  {
    name: "a file written inside is seen on the host while the command runs",
    command:
      "echo half > f; sleep 0.4; echo whole >> f; i=0; until grep -qs . answer || [ $i -gt 100 ]; do sleep 0.1; i=$((i+1)); done; cat answer",
    meanwhile: [
      { seen: "f", until: /whole/ },
      { write: "answer", text: "from the host\n" },
    ],
  },
  {
    name: "gdb -batch of a program that crashes",
    needs: ["gdb", "gcc"],
    files: { "c.c": "int f(int *p) { return *p; }\nint main(void) { return f(0); }\n" },
    command:
      "gcc -g -O0 -o c c.c && gdb -q -nx -batch -ex run -ex bt -ex 'print p' ./c 2>&1 | grep -E '^(Program|#|\\$)' | sed 's/0x[0-9a-f]*/ADDR/g'",
  },
  {
    name: "gdb sets a breakpoint and steps",
    needs: ["gdb", "gcc"],
    files: {
      "s.c":
        '#include <stdio.h>\nint main(void) {\n  int n = 1;\n  n += 41;\n  printf("%d\\n", n);\n  return 0;\n}\n',
    },
    command:
      "gcc -g -O0 -o s s.c && gdb -q -nx -batch -ex 'break 4' -ex run -ex next -ex 'print n' -ex continue ./s 2>&1 | grep -vE 'thread|debuginfod|libthread_db'",
    varies: {
      output: [
        [/process \d+/g, "process N"],
        [/0x[0-9a-f]+/g, "ADDR"],
      ],
    },
  },
  {
    name: "strace -f counts and shows calls",
    needs: ["strace"],
    tried: "strace -o /dev/null true",
    command:
      "strace -f -e trace=execve,exit_group -o log sh -c 'echo a; true'; grep -c execve log; strace -c -o sum true; grep -c execve sum; strace -e trace=openat cat f 2>&1 | grep -c '\"f\"'",
    files: { f: "x\n" },
    varies: { content: [/\/(log|sum)$/] },
  },
  {
    name: "ltrace",
    needs: ["ltrace", "gcc"],
    tried: "ltrace -o /dev/null /bin/true",
    files: { "l.c": '#include <stdlib.h>\nint main(void) { return atoi("7"); }\n' },
    command: "gcc -o l l.c && ltrace -e atoi ./l 2>&1 | sed 's/0x[0-9a-f]*/A/g'; echo $?",
  },
  {
    name: "valgrind finds a leak",
    needs: ["valgrind", "gcc"],
    files: { "v.c": "#include <stdlib.h>\nint main(void) { char *p = malloc(10); p[0] = 1; return 0; }\n" },
    command:
      "gcc -g -o v v.c && valgrind --leak-check=full --error-exitcode=9 ./v 2>&1 | sed 's/^==[0-9]*== //' | grep -E 'definitely lost:|ERROR SUMMARY|in use at exit'; valgrind -q --error-exitcode=9 --leak-check=full ./v > /dev/null 2>&1; echo $?",
  },
  {
    name: "lsof of one's own files",
    needs: ["lsof"],
    command: "exec 3> held; lsof -w -a -p $$ -d 3 -F an | sed 1d; exec 3>&-",
  },
  {
    name: "a core file",
    needs: ["gcc"],
    tried: 'test "$(cat /proc/sys/kernel/core_pattern)" = core',
    files: { "a.c": "#include <stdlib.h>\nint main(void) { abort(); }\n" },
    command: "ulimit -c unlimited && gcc -o a a.c && { ./a; echo $?; ls | sed 's/[.][0-9]*$//'; }",
    refused: { default: /core files/, strict: /core files/ },
  },
  {
    name: "a namespace of one's own",
    needs: ["unshare"],
    tried: "unshare -Ur true",
    command: "unshare -Ur id -u",
    refused: { default: /namespace/i, strict: /namespace/i },
  },
  {
    name: "parallel",
    strictest: "claude-code",
    needs: ["parallel"],
    command: "parallel -k echo {1}-{2} ::: a b ::: 1 2; seq 4 | parallel --will-cite -j2 'touch f{}'; ls",
    env: { PARALLEL_HOME: "/tmp/parallel" },
  },
  {
    name: "a signal to a tree of processes by timeout",
    needs: ["timeout"],
    command:
      "exec 2> /dev/null; timeout 1 sh -c 'trap \"echo got term; exit 9\" TERM; while :; do sleep 0.05; done'; echo $?; timeout --preserve-status 0.2 sh -c 'sleep 9'; echo $?; timeout --foreground 0.2 sleep 9; echo $?",
  },
  {
    name: "threads, shared memory and semaphores",
    needs: ["python3"],
    command:
      "python3 - <<'E'\nfrom multiprocessing import Pool, Value, Lock, shared_memory\nimport threading\ndef f(x): return x * x\nif __name__ == '__main__':\n    with Pool(2) as p: print(p.map(f, range(5)))\n    m = shared_memory.SharedMemory(create=True, size=100); m.buf[0] = 7; print(open('/dev/shm/' + m.name, 'rb').read(1)); m.close(); m.unlink()\n    l = threading.Lock(); n = [0]\n    def g():\n        for _ in range(1000):\n            with l: n[0] += 1\n    t = [threading.Thread(target=g) for _ in range(4)]; [x.start() for x in t]; [x.join() for x in t]; print(n)\nE",
  },
  {
    name: "200 processes at once",
    command:
      "for i in $(seq 200); do (sleep 0.3; echo $i) & done > out; wait; sort -n out | tail -1; wc -l < out",
    varies: { content: [/\/out$/] },
  },
];
