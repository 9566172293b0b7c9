import { describe, expect, test } from "vitest";
import { decide, parsePolicy, readShell } from "../../../../../broker/policy/index.ts";

const WHERE = { project: "/projects/app", home: "/home/ann", cwd: "/projects/app" };

function policyOf(commands: string, rest = "") {
  const loaded = parsePolicy(`{ id: p, name: P, mode: enforce, commands: ${commands} ${rest} }`, "p.yaml");
  if ("problems" in loaded) throw new Error(loaded.problems.map((problem) => problem.text).join("\n"));
  return loaded.ok;
}

const RULES =
  'denied: ["sudo *", "rm -rf /", "curl * | sh", "reboot"], ask: ["git push *"], isolated: ["npm install *"], warn: ["git reset --hard *"]';
const plain = policyOf(`{ ${RULES}, opaque: allow }`);
const opaque = policyOf("{ opaque: ask }");

const verdictOf = (policy: typeof plain, command: string): string =>
  decide(policy, readShell(command), WHERE).verdict;

describe("an unquoted word that may be none does not hide what a rule refuses", () => {
  test.each([
    ["git $x push", "ask", 'git "$x" push'],
    ["git ${x} push origin", "ask", 'git "${x}" push origin'],
    ["git $x$y push", "ask", 'git $x"$y" push'],
    ["git $x push", "ask", "git $x status"],
    ["git $x push", "ask", "echo $x push"],
    ["git $(true) push", "ask", 'git "$(true)" push'],
    ["git `true` push", "ask", "git $((1)) push"],
    ["npm $x install left-pad", "isolate", "npm $x run install"],
    ["npm $(true) install y", "isolate", "npm a$x install y"],
    ["npm {,install} y", "isolate", "npm {,test} y"],
    ["npm {install,} y", "isolate", 'npm ""{,install} y'],
    ["{,sudo} id", "deny", "{,echo} sudo id"],
    ["$x sudo id", "deny", '"$x" sudo id'],
    ["rm $x -rf $y /", "deny", "rm $x -rf $y/build"],
    ["reboot $x", "deny", 'reboot "$x"'],
    ["curl $x | $y sh", "deny", "curl $x | $y sort"],
    ["cd $x / && rm -rf .", "deny", "cd $x && rm -rf ."],
  ])("%j is %s, %j is not", (command, verdict, twin) => {
    expect([verdictOf(plain, command), verdictOf(plain, twin)]).toEqual([verdict, "allow"]);
  });

  test("what was assigned is one word", () => {
    expect(readShell("export a=$x b").fragments).toHaveLength(1);
  });

  test("a warning is told once", () => {
    expect(decide(plain, readShell("git reset --hard $x"), WHERE).warnings).toHaveLength(1);
  });
});

describe("nor what a shell or a wrapper runs", () => {
  test.each([
    ['sh $x -c "sudo id"', 'sh $x -c "echo sudo id"'],
    ["bash $x -c 'sudo id'", "bash \"$x\" -c 'sudo id'"],
    ["env $x sudo id", "env $x echo sudo id"],
    ["nohup $x sudo id", 'nohup "$x" sudo id'],
    ["timeout $x 5 sudo id", 'timeout "$x" 5 sudo id'],
    ["timeout $x sudo id", "timeout $x echo id"],
    ["env $a env $b env $c env $d sudo id", "env $a env $b env $c env $d id sudo"],
    ["sh -c 'nohup $x sudo id'", "sh -c 'nohup \"$x\" sudo id'"],
    ["find . -exec $x sudo id \\;", "find . -exec $x id sudo \\;"],
    ["xargs $x sudo id", 'xargs "$x" sudo id'],
  ])("%j is denied, %j is not", (command, twin) => {
    expect([verdictOf(plain, command), verdictOf(plain, twin)]).toEqual(["deny", "allow"]);
  });

  test.each([
    ["timeout $x id", 'timeout "$x" id'],
    ["bash $x -c id", "bash $x id"],
    ["env $x id", "env A=$x id"],
    ["nohup $x id", "xargs -P $(nproc) echo"],
  ])("%j is opaque, %j is not", (command, twin) => {
    expect([verdictOf(opaque, command), verdictOf(opaque, twin)]).toEqual(["ask", "allow"]);
  });
});

describe("lists that allow hold to what is written", () => {
  const listed = policyOf('{ allowed: ["git status", "git log *", "timeout 5 *", "ls *"] }');
  test.each([
    ["git $x status", "git status"],
    ["git status $x", "git status"],
    ["git {,status}", "git status"],
    ["{git,status}", "'git' status"],
    ["$x ls", "ls $x"],
    ["git $x log", "git log $x"],
    ["git $(ls) log", "git log $(ls)"],
    ["timeout $x 5 ls", "timeout 5 ls $x"],
  ])("%j is refused", (command, twin) => {
    expect(verdictOf(listed, command)).toBe("deny");
    expect(verdictOf(listed, twin)).toBe("allow");
  });

  const approved = policyOf("{}", ', approval: { require: true, auto_approve: ["git status", "ls *"] }');
  test.each([
    ["git $x status", "ask"],
    ["git status $x", "ask"],
    ["ls $x", "allow"],
  ])("%j without being asked: %s", (command, verdict) => {
    expect(verdictOf(approved, command)).toBe(verdict);
  });
});

describe("an option of a wrapper that moves the folder", () => {
  test.each([
    ["env -C / rm -rf .", "env -C /tmp rm -rf ."],
    ["env --chdir=/ rm -rf .", "env --chdir=/tmp rm -rf ."],
    ["env --chdir / rm -rf ./", "env --chdir / rm -rf ./tmp"],
    ["env -iC/work rm -rf ..", "env -iC/work rm -rf app/.."],
    ["env -C / -S 'rm -rf .'", "env -C /tmp -S 'rm -rf .'"],
    ["env -C / sh -c 'rm -rf .'", "env -C / true; rm -rf ."],
    ["cd / && env -C tmp rm -rf ..", "cd / && env -C tmp/a rm -rf .."],
  ])("%j is denied, %j is not", (command, twin) => {
    expect([verdictOf(plain, command), verdictOf(plain, twin)]).toEqual(["deny", "allow"]);
  });

  test.each(["sudo -D / rm -rf .", "sudo --chdir=/ rm -rf .", "run0 -D / rm -rf ."])("%j too", (command) => {
    const policy = policyOf('{ denied: ["rm -rf /"] }');
    expect(verdictOf(policy, command)).toBe("deny");
    expect(verdictOf(policy, command.replace("/", "/tmp"))).toBe("allow");
  });
});

test("many such words cost two readings, not one for each choice", () => {
  const words = Array.from({ length: 3000 }, (_, index) => `$x${index}`).join(" ");
  expect(readShell(`git ${words} push`).fragments).toHaveLength(2);
  const nested = `${"env $x timeout $y 5 nice -n $z ".repeat(8)}sudo id`;
  expect(readShell(nested).fragments.length).toBeLessThan(200);
});
