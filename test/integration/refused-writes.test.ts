/** Writes that a mount of the world refuses: what a program calls EROFS or EBUSY, the reply says in a sentence. */
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../actors.ts";
import { TestBroker } from "../broker.ts";

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
      expect(notice?.message).toContain(`"substrate policy allow write ${beside}" lets it`);
      expect(notice?.message).toContain(`'fs.write:${beside}'`);
      const span = await broker.span(notice?.span_id ?? "");
      expect(span).toMatchObject({ event_type: "violation", violation: { kind: "write", subject: path } });
      expect(existsSync(path)).toBe(false);
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

    test("in a bare repository beside the project is lifted by opening all of that repository", async () => {
      const odd = join(broker.folder, "it's bare.git");
      for (const name of ["HEAD", "objects/info/x", "refs/heads/x"]) broker.write(join(odd, name), "");
      const { notices } = await broker.run(`mkdir "${odd}/objects/aa"; true`);
      expect(notices[0]?.message).toContain(`allow write '${odd.replaceAll("'", "'\\''")}'" lets it`);
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
        /kept\/file' was not written: '\$PROJECT\/kept' stands in fs.deny_write of policy 'default' \(default.yaml:6\)/,
      );
      expect(said).toMatch(
        /\.git\/hooks\/new' was not written: '\$PROJECT\/\.git\/hooks' stands in fs\.deny_write/,
      );
      expect(said).toMatch(/\.git\/config' was not written: '\$PROJECT\/\.git\/config' stands in/);
      expect(said).toMatch(/\.git' was not written: it is, or holds, a place that this world keeps as it is/);
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
