import { describe, expect, test } from "vitest";
import { decide, parsePolicy, readArgv, readShell } from "../../../../broker/policy/index.ts";

const WHERE = { project: "/projects/app", home: "/home/ann", cwd: "/projects/app" };

function policyOf(fs: string) {
  const loaded = parsePolicy(`id: p\nname: P\nmode: enforce\n${fs}`, "p.yaml");
  if ("problems" in loaded) throw new Error(loaded.problems.map(({ text }) => text).join("\n"));
  return loaded.ok;
}

const PLAIN = policyOf("");
const CACHES = policyOf(
  'fs:\n  write: ["$PROJECT/**", "$HOME/.cache/**", "/srv/data/**"]\n  deny_write: [frozen, "**/*.lock", "$HOME/.cache/sealed", "we[i]rd"]\n',
);

describe("a write that the world would refuse is denied with its reason", () => {
  test.each([
    ["echo x > /etc/motd", "'>' opens"],
    ["echo x >> /etc/motd", "'>>' opens"],
    ["echo x >| /etc/motd", "'>|' opens"],
    ["echo x &> /etc/motd", "'&>' opens"],
    ["echo x >& /etc/motd", "'>&' opens"],
    ["> /etc/motd", "'>' opens"],
    ["cat 2> /etc/err", "'>' opens"],
    ["exec 3<> /etc/motd", "'<>' opens"],
    ["cat <<E > /etc/motd\ntext\nE\n", "'>' opens"],
    ["(echo a; echo b) > /etc/motd", "'>' opens"],
    ["for f in a b; do echo $f; done > /etc/list", "'>' opens"],
    ["cd /etc && echo x > motd", "'>' opens"],
    ["echo x > ../../etc/motd", "'>' opens"],
    ["echo x > ~/.bashrc", "'>' opens"],
    ["echo x | tee /usr/x", "tee opens"],
    ["echo x | sudo tee -a /etc/hosts", "tee opens"],
    ["env A=1 tee ok /usr/x", "tee opens"],
    ["dd if=/dev/zero of=/dev/sda", "dd opens"],
    ["cp a /usr/bin/a", "cp writes"],
    ["cp -t /usr/bin a", "cp writes"],
    ["cp --target-directory=/usr/bin a b", "cp writes"],
    ["cp a b /usr/bin", "cp writes"],
    ["mv a /etc/a", "mv moves"],
    ["ln -s a /etc/a", "ln makes"],
    ["install -m 755 a /usr/local/bin/a", "install writes"],
    ["touch /etc/x", "touch makes"],
    ["truncate -s 0 /etc/x", "truncate makes"],
    ["sed -i s/a/b/ /etc/hosts", "sed -i writes"],
    ["sed -i.bak -e s/a/b/ /etc/hosts", "sed -i writes"],
    ["curl -fsSLo /usr/x https://example.org/x", "curl -o writes"],
    ["wget -O /usr/x https://example.org/x", "wget opens"],
    ["sort -o /etc/x a", "sort -o writes"],
    ["find . -name x -fprint /etc/x", "find opens"],
    ["/usr/bin/tee /etc/x", "tee opens"],
    ["(echo x > /etc/motd)", "'>' opens"],
    ["{ echo x > /etc/motd; }", "'>' opens"],
    ["(cd /etc && echo x > motd)", "'>' opens"],
    ["sh -c 'echo x > /etc/motd'", "'>' opens"],
    ["env A=1 bash -c 'true && tee /etc/x'", "tee opens"],
    ["nice sh -c '(cd /etc && cp a b)'", "cp writes"],
    ["eval 'echo x > /etc/motd'", "'>' opens"],
    ["true && { sh -c 'touch /etc/x'; }", "touch makes"],
  ])("%s", (command, reason) => {
    const { verdict, rule } = decide(PLAIN, readShell(command), WHERE);
    expect(verdict).toBe("deny");
    expect(rule).toMatchObject({ list: "fs.write", pattern: "only '$PROJECT/**'", source: "p.yaml:1" });
    expect(rule?.reason).toContain(reason);
  });

  test("without a shell too", () => {
    expect(decide(PLAIN, readArgv(["tee", "/etc/x"]), WHERE)).toMatchObject({
      verdict: "deny",
      rule: { list: "fs.write", fragment: "tee /etc/x" },
    });
    expect(decide(PLAIN, readArgv(["echo", ">", "/etc/x"]), WHERE).verdict).toBe("allow");
  });

  test.each([
    ["echo x > frozen", "frozen"],
    ["echo x > sub/../frozen", "frozen"],
    ["touch frozen/below", "frozen"],
    ["cp new deep/in/it/yarn.lock", "**/*.lock"],
    ["echo x > ~/.cache/sealed/x", "$HOME/.cache/sealed"],
    ["cp x frozen/", "frozen"],
  ])("%s, by fs.deny_write", (command, pattern) => {
    const { verdict, rule } = decide(CACHES, readShell(command), WHERE);
    expect(verdict).toBe("deny");
    expect(rule).toMatchObject({ list: "fs.deny_write", pattern, source: "p.yaml:6" });
  });

  test("observe only says what it would have been", () => {
    const loaded = parsePolicy("id: p\nname: P\n", "p.yaml");
    if ("problems" in loaded) throw new Error("The policy must load");
    expect(decide(loaded.ok, readShell("touch /etc/x"), WHERE).verdict).toBe("would_deny");
  });
});

describe("what the world lets pass, or alone can judge, is not denied", () => {
  test.each([
    "echo x > file",
    "echo x > sub/dir/file 2>&1",
    "echo x > /projects/app/file",
    "echo x > ~/.cache/x",
    "echo x > /srv/data/x",
    "echo x > /tmp/x",
    "echo x > /var/tmp/x",
    "echo x > /run/x",
    "echo x > /var/run/x",
    "echo x > /dev/shm/x",
    "echo x > /dev/null 2> /dev/stderr",
    "echo x > /dev/fd/1",
    "echo x > /proc/self/fd/1",
    "echo 500 > /proc/self/oom_score_adj",
    "echo x > /dev/tcp/127.0.0.1/80",
    "echo x >&2",
    "exec 3>&-",
    "exec 3>&1-",
    'echo x > "$f"',
    "echo x > *.txt",
    "echo x > /etc/$name",
    "cat < /etc/passwd",
    "cd $d && echo x > file",
    "mkdir -p /usr/lib",
    "rm -f /etc/nothing",
    "touch -c /etc/nothing",
    "cp -n a /etc/a",
    "cp --parents a /srv",
    "cp a /srv",
    "cp .cache /home/ann",
    "cp *.txt /srv/",
    "install -d /usr/lib",
    "sed s/a/b/ /etc/hosts",
    "sed -n p /etc/hosts",
    "dd if=/dev/sda of=image",
    "curl -o - https://example.org",
    "curl -o x --output-dir /etc https://example.org",
    "wget -O- https://example.org",
    "sort /etc/passwd",
    "find /etc -name x",
    "tee --unknown /etc/x",
    "./tee /etc/x",
    "tee < /etc/passwd",
    "cp x",
    "echo x > we1rd",
  ])("%s", (command) => {
    expect(decide(CACHES, readShell(command, "bash"), WHERE)).toMatchObject({ verdict: "allow", rule: null });
  });

  test.each(["HOME=/tmp; echo x > ~/y", "export HOME=/tmp && echo x > ~/y"])(
    "%s: the folder is not known, and so what it is is not denied but isolated",
    (command) => {
      expect(decide(CACHES, readShell(command, "bash"), WHERE)).toMatchObject({
        verdict: "isolate",
        rule: { list: "commands.opaque" },
      });
    },
  );

  test.each([
    "echo x > /etc/motd; echo y > file",
    "echo x > /etc/motd || true",
    "echo x > /etc/motd & wait",
    "if test -w /etc/motd; then echo x > /etc/motd; fi",
    "[ -w /etc/motd ] || echo x > /etc/motd",
    "f() { echo x > /etc/motd; }",
    "while read -r l; do echo $l > /etc/motd; done",
    "xargs tee /etc/x",
    "find . -exec tee /etc/x {} +",
    "chroot /srv tee /etc/x",
    "sudo chroot /srv tee /etc/x",
    "! echo x > /etc/motd",
    "(echo x > /etc/motd; true)",
    "(echo x > /etc/motd) || true",
    "sh -c 'echo x > /etc/motd; true'",
    "sh -c 'echo x > /etc/motd'; true",
    "echo $(tee /etc/x)",
  ])("a line that goes on without it: %s", (command) => {
    expect(decide(PLAIN, readShell(command), WHERE)).toMatchObject({ verdict: "allow", rule: null });
  });

  test("a path that leads elsewhere, as whoever can look at it says", () => {
    const leaves = (path: string): boolean => path.startsWith("/home/ann/link/");
    expect(decide(PLAIN, readShell("touch ~/link/x"), { ...WHERE, leaves }).verdict).toBe("allow");
    expect(decide(PLAIN, readShell("touch ~/other/x"), { ...WHERE, leaves }).verdict).toBe("deny");
  });

  test("a project below /tmp is judged, and its neighbours are the world's own", () => {
    const where = { ...WHERE, project: "/tmp/app", cwd: "/tmp/app" };
    const none = policyOf("fs:\n  write: []\n");
    expect(decide(none, readShell("touch x"), where)).toMatchObject({
      verdict: "deny",
      rule: { list: "fs.write", pattern: "nothing", source: "p.yaml:5" },
    });
    expect(decide(none, readShell("touch ../x"), where).verdict).toBe("allow");
  });
});
