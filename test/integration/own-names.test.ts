import { describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import { recordSkip } from "../support/run/skips.ts";
import { actors } from "../support/users/users.ts";

const mayMount = process.getuid?.() === 0;
if (!mayMount) recordSkip({ what: "names of the host's hosts file", why: "only root can put another there" });

/** The broker's own hosts file. */
const NAMES = `mount -t tmpfs none /mnt && printf '127.0.0.1 localhost\\n127.0.0.1 shop.test\\n10.0.0.7 printer.test\\n' > /mnt/hosts && mount --bind /mnt/hosts /etc/hosts && exec "$@"`;

const SERVES = `
const server = require("node:http").createServer((_, answer) => answer.end("the shop")).listen(8123, "127.0.0.1", async () => {
  console.log(await (await fetch("http://shop.test:8123")).text());
  server.close();
  server.closeAllConnections();
});`;

describe.skipIf(!mayMount).each(actors())("a name that the host's file gives its own, as $kind", (actor) => {
  test("reaches a server of the command's own, as it does on the host, and another name stays unknown", async () => {
    const broker = await TestBroker.start(actor, {
      within: ["unshare", "--mount", "--propagation", "private", "--", "/bin/sh", "-ec", NAMES, "sh"],
      policies: {
        default: "id: default\nname: x\nmode: enforce\nnet: { allowed: ['registry.example.test'] }\n",
      },
    });
    try {
      expect(await broker.run(`'${process.execPath}' -e '${SERVES}'`)).toMatchObject({
        stdout: "the shop\n",
        stderr: "",
        exit: 0,
      });
      expect((await broker.run("getent hosts printer.test")).stdout).toBe("");
    } finally {
      await broker.stop();
    }
  });
});
