/** Writes that a mount of the world refuses: what a program calls EROFS or EBUSY, the reply says in a sentence. */
import { chownSync, existsSync, mkdtempSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

const policy = (mode: string, id = "default"): string => `id: ${id}
name: Refused writes
mode: ${mode}
fs:
  write: ["$PROJECT/**"]
  deny_write: ["$PROJECT/.git/hooks", "$PROJECT/.git/config", "$PROJECT/kept"]
`;

describe.each(actors())("a refused write, as $kind", (actor) => {
  describe.each(["observe", "enforce"])("under %s", (mode) => {
    let broker: TestBroker;
    let beside: string;
    beforeAll(async () => {
      // Not below /tmp, which is the world's own.
      const folder = mkdtempSync(join(actor.uid === 0 ? "/opt" : actor.home, "sb-refused-"));
      broker = await TestBroker.start(actor, { folder, policies: { default: policy(mode) } });
      beside = join(folder, "beside");
      broker.write(join(beside, "file"), "as it was\n");
      broker.write(join(broker.project, ".git/hooks/old"), "");
      broker.write(join(broker.project, ".git/config"), "");
      broker.write(join(broker.project, "kept/file"), "as it was\n");
    });
    afterAll(() => broker.stop());

    test("is a notice with the list, its line, and what lifts it, and a span of its own", async () => {
      const path = join(beside, "new");
      const { notices } = await broker.run(`echo x > ${path}; true`);
      expect(notices).toMatchObject([{ kind: "denied", count: 1, program: null, rule: null }]);
      const [notice] = notices;
      expect(notice?.message).toContain(`'${path}' was not written`);
      expect(notice?.message).toContain("fs.write of policy 'default' (default.yaml:5)");
      expect(notice?.message).toContain(`"substrate policy allow write ${beside}" allows it`);
      expect(notice?.message).toContain(`'fs.write:${beside}'`);
      const span = await broker.span(notice?.span_id ?? "");
      expect(span).toMatchObject({ event_type: "violation", violation: { kind: "write", subject: path } });
      expect(existsSync(path)).toBe(false);
    });

    test("to a setting of the kernel is offered to no policy, which would refuse it", async () => {
      const { notices } = await broker.run("echo 10 > /proc/sys/vm/swappiness; true");
      // Of another user it is refused by the file's mode already.
      const told = actor.uid === 0 ? [expect.stringContaining("belongs to the kernel, and no policy")] : [];
      expect(notices.map(({ message }) => message)).toEqual(told);
    });

    test.each([
      ["a file that is there", (at: string) => `echo x >> ${at}/file`, "file"],
      ["one that is cut", (at: string) => `truncate -s 0 ${at}/file`, "file"],
      ["one that is removed", (at: string) => `rm ${at}/file`, "file"],
      ["one that is renamed", (at: string) => `mv ${at}/file ${at}/other`, "file"],
      ["a folder that is made", (at: string) => `mkdir ${at}/made`, "made"],
      ["a link that is made", (at: string) => `ln -s x ${at}/link`, "link"],
      ["a file's mode", (at: string) => `chmod 777 ${at}/file`, "file"],
      ["one that a link of the project leads to", (at: string) => `ln -s ${at}/file l; echo x > l`, "file"],
    ])("%s is told by its real path", async (_what, commandIn, name) => {
      const { notices } = await broker.run(`${commandIn(beside)}; rm -f l`);
      expect(notices[0]?.message).toContain(`'${join(beside, name)}' was not written`);
      expect(readFileSync(join(beside, "file"), "utf8")).toBe("as it was\n");
    });

    test("directly in the home names no missing path to open, which would be a lock, and names one that is there", async () => {
      const { home } = broker.actor;
      const kept = mkdtempSync(join(home, ".sb-kept-"));
      chownSync(kept, broker.actor.uid, broker.actor.gid);
      try {
        const told = async (cmd: string): Promise<string | undefined> =>
          (await broker.run(`${cmd}; true`)).notices[0]?.message;
        const missing = await told(`mkdir ${kept}.lock`);
        expect(missing).toContain("no folder around it is safe to open");
        expect(missing).not.toContain("policy allow write");
        expect(await told(`chmod 755 ${kept}`)).toContain(`"substrate policy allow write ${kept}" allows it`);
      } finally {
        rmdirSync(kept);
      }
    });

    test("in a folder of root's offers an ordinary user no policy, which could not open it", async () => {
      const { notices } = await broker.run("mkdir /opt/substrate-new; true");
      expect(notices[0]?.message).toContain(
        broker.actor.uid === 0
          ? "POST /v1/request_scopes"
          : "this user may not write there without Substrate either",
      );
      expect(existsSync("/opt/substrate-new")).toBe(false);
    });

    test("in a folder of programs is told to each user where the command fails by it", async () => {
      const { exit, notices } = await broker.run("mkdir /usr/lib/substrate-new");
      expect(exit).not.toBe(0);
      expect(notices.map(({ message }) => message)).toEqual([
        expect.stringMatching(
          /^'\/usr\/lib\/substrate-new' was not written: it is outside fs\.write of policy/,
        ),
      ]);
    });

    test("of the modes of a denied folder's files is told once where the command fails by it", async () => {
      const { exit, notices } = await broker.run("chmod -R go-w .git/hooks");
      expect(exit).not.toBe(0);
      expect(notices.map(({ message }) => message)).toEqual([
        expect.stringMatching(
          /\.git\/hooks(?:\/[^']*)?' was not written: '\$PROJECT\/\.git\/hooks' is in fs\.deny_write/,
        ),
      ]);
    });

    test("in a bare repository beside the project is lifted by opening all of that repository", async () => {
      const odd = join(broker.folder, "it's bare.git");
      for (const name of ["HEAD", "objects/info/x", "refs/heads/x"]) broker.write(join(odd, name), "");
      const { notices } = await broker.run(`mkdir "${odd}/objects/aa"; true`);
      expect(notices[0]?.message).toContain(`allow write '${odd.replaceAll("'", "'\\''")}'" allows it`);
    });

    test("many in one folder are one notice with their count, those in another are another one", async () => {
      const { notices } = await broker.run(
        `for i in 1 2 3 4 5; do true > ${beside}/f$i; true > ${beside}/f$i; done 2>/dev/null; mkdir ${broker.folder}/x; true`,
      );
      expect(notices.map(({ count }) => count)).toEqual([5, 1]);
    });

    test("more than are told is still quick, and the command goes on", async () => {
      const ran = await broker.run(`for i in $(seq 500); do true > ${beside}/g$i; done 2>/dev/null; echo on`);
      expect(ran).toMatchObject({ exit: 0, stdout: "on\n" });
      expect(ran.notices.map(({ count }) => count)).toEqual([32]);
    });

    test("a denied or sealed place of the project is told with its list", async () => {
      const { notices } = await broker.run(
        "echo x > kept/file; echo x > .git/hooks/new; mv .git/config .git/c; mv .git other; true",
      );
      const said = notices.map(({ message }) => message).join("\n");
      expect(said).toMatch(
        /kept\/file' was not written: '\$PROJECT\/kept' is in fs.deny_write of policy 'default' \(default.yaml:6\)/,
      );
      expect(said).toMatch(
        /\.git\/hooks\/new' was not written: '\$PROJECT\/\.git\/hooks' is in fs\.deny_write/,
      );
      expect(said).toMatch(/\.git\/config' was not written: '\$PROJECT\/\.git\/config' is in/);
      expect(said).toMatch(/\.git' was not written: it is or contains a protected place/);
      expect(readFileSync(join(broker.project, "kept/file"), "utf8")).toBe("as it was\n");
    });

    test("the command line says it in one line", async () => {
      const { stderr } = await broker.cli(["exec", "--", `echo x > ${beside}/new; true`]);
      const lines = stderr.split("\n").filter((line) => line.startsWith("substrate: "));
      expect(lines).toHaveLength(1);
      expect(lines[0]).toContain(`'${beside}/new' was not written`);
    });

    test("what fails on the host too, and what does not fail, is not told", async () => {
      const { notices } = await broker.run(
        [
          `rm -f ${beside}/missing`,
          `mkdir -p ${beside}`,
          `mkdir ${beside}/file`,
          `rmdir ${beside}/missing`,
          `cat ${beside}/file`,
          "echo x > /dev/null",
          "echo x > /tmp/own; mv /tmp/own /tmp/other; rm /tmp/other",
          "mkdir own; echo x > own/file; chmod 600 own/file; ln own/file own/second; rm -r own",
          "touch /dev/shm/x; mkfifo /tmp/pipe",
          ...(actor.uid === 0
            ? []
            : ["touch /etc/of-root", "echo x >> /etc/passwd", "chmod 777 /usr/bin/env"]),
          "true",
        ].join("; "),
      );
      expect(notices.map(({ message }) => message)).toEqual([]);
    });
  });
});

describe.each(actors())("what no call tells, as $kind", (actor) => {
  let broker: TestBroker;
  let beside: string;
  beforeAll(async () => {
    const folder = mkdtempSync(join(actor.uid === 0 ? "/opt" : actor.home, "sb-refused-"));
    const text = `${policy("enforce")}  deny_read: ["$PROJECT/secret", "${folder}/beside/hidden"]
commands: { isolated: ["sh alone *"] }
`;
    broker = await TestBroker.start(actor, { folder, policies: { default: text } });
    beside = join(folder, "beside");
    broker.write(join(beside, "hidden"), "hidden\n");
    broker.write(join(broker.project, "secret"), "secret\n");
    broker.write(join(broker.project, "alone"), `touch ${beside}/new\n`);
  });
  afterAll(() => broker.stop());

  test("a write that an isolated command may not make is a notice", async () => {
    const { exit, notices } = await broker.run("sh alone here");
    expect(exit).not.toBe(0);
    const written = notices.filter(({ message }) => message.includes("was not written"));
    expect(written).toMatchObject([{ kind: "denied" }]);
    expect(written[0]?.message).toContain(
      `'${beside}/new' was not written: it is outside fs.write of policy 'default'`,
    );
  });

  test("so is one in a command that goes on and succeeds", async () => {
    broker.write(join(broker.project, "alone"), `touch ${beside}/new; true\n`);
    const { exit, notices } = await broker.run("sh alone here");
    expect(exit).toBe(0);
    expect(notices.map(({ message }) => message).join("\n")).toContain(`'${beside}/new' was not written`);
  });

  test("a hidden name that a failed command names is a notice, whether it exists or not", async () => {
    for (const path of ["secret", `${beside}/hidden`, `${beside}/hidden/none`]) {
      const { stdout, notices } = await broker.run(`cat ${path}`);
      expect(stdout).toBe("");
      expect(notices.map(({ message }) => message).join("\n"), path).toContain(
        "is in fs.deny_read of policy 'default'",
      );
    }
    expect((await broker.run("cat nowhere")).notices).toEqual([]);
  });

  test("a program that makes namespaces is told why it cannot", async () => {
    const { exit, notices } = await broker.run("unshare -Ur true || exit 3");
    expect(exit).toBe(3);
    expect(notices).toMatchObject([{ kind: "denied", program: null }]);
    expect(notices[0]?.message).toMatch(
      /^The system call unshare\(CLONE_NEWUSER\) was refused .*'world\.namespaces: allow'/,
    );
  });
});
