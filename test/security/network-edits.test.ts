import { chownSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { eventually } from "../support/broker/broker.ts";
import { actorsWith } from "../support/run/needs.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";

const NAME = "files.example.test";
const LIST = [`${NAME}:9000`, "registry.example.test"];

/** Sends 1,000 bytes each 20 ms until it is cut or the file `stop` is there, and then says what came of it. */
const SEND = `
import os, socket, time
s = socket.create_connection(("${NAME}", 9000), 5)
s.settimeout(5)
came = "held"
try:
    while not os.path.exists("stop"):
        s.sendall(bytes(1000))
        open("sending", "w").close()
        time.sleep(0.02)
except OSError: came = "cut"
open("end", "w").write(came)
`;

describe.each(actorsWith("python3", "nft"))("an edit while a connection sends, as $kind", (actor) => {
  let place: NetworkPlace;
  beforeAll(async () => {
    place = await NetworkPlace.open(actor, { default: networkPolicy(LIST) });
    place.broker.write(path("send.py"), SEND);
  });
  afterAll(() => place.close());
  beforeEach(async () => {
    edit("default", networkPolicy(LIST));
    for (const name of ["stop", "sending", "end", ".substrate-profile"]) rmSync(path(name), { force: true });
    await place.broker.operator("DELETE", "/v1/budgets/test");
  });

  function path(name: string): string {
    return join(place.broker.project, name);
  }

  /** As an editor saves: at no moment half of it. */
  function edit(name: string, text: string): void {
    const file = join(place.broker.home, `policies/${name}.yaml`);
    writeFileSync(`${file}.new`, text);
    chownSync(`${file}.new`, actor.uid, actor.gid);
    renameSync(`${file}.new`, file);
  }

  /** What came of the connection when `meanwhile` had been done, and how many bytes its server had received. */
  async function sending(
    body: Readonly<Record<string, unknown>>,
    meanwhile: () => Promise<void> | void,
  ): Promise<{ readonly came: string; readonly received: number }> {
    const { seen } = await place.internet.during(async () => {
      const running = place.broker.run({ cmd: "python3 send.py", ...body });
      try {
        expect(await eventually(() => existsSync(path("sending")), 5000)).toBe(true);
        await sleep(500);
        await meanwhile();
        await eventually(() => existsSync(path("end")), 3000);
      } finally {
        place.broker.write(path("stop"), "");
      }
      await running;
    });
    await eventually(() => existsSync(path("end")), 2000);
    const received = seen.connections.reduce((sum, connection) => sum + connection.received, 0);
    return { came: readFileSync(path("end"), "utf8"), received };
  }

  const reload = async (): Promise<void> => {
    await place.broker.operator("POST", "/v1/policy/reload");
  };

  test("that says nothing else leaves it alone", async () => {
    const { came, received } = await sending({}, async () => {
      edit("default", `${networkPolicy(LIST)}# a remark\n`);
      await reload();
    });
    expect(came).toBe("held");
    expect(received).toBeGreaterThan(50_000);
  });

  test("lowers its budget: it is cut when it has sent more already", async () => {
    const { came, received } = await sending({}, async () => {
      edit("default", networkPolicy(LIST, { net: "  egress_budget: { total_bytes: 2000 }" }));
      await reload();
    });
    expect(came).toBe("cut");
    expect(received).toBeLessThan(50_000);
    const { result, seen } = await place.during("python3 send.py");
    expect(result.notices).toMatchObject([{ kind: "budget" }]);
    expect(seen.connections).toEqual([]);
  });

  test("lowers its rate: it is held back from then on", async () => {
    const { received } = await sending({}, async () => {
      edit("default", networkPolicy(LIST, { net: "  egress_budget: { bytes_per_sec: 1000 }" }));
      await reload();
    });
    // What a bucket that is full at first lets through at once is 16 KiB, of the world and of the agent alike.
    expect(received).toBeLessThan(70_000);
  });

  test("takes its name away, also when the command has made the folder's profile unreadable", async () => {
    const cmd = "echo no profile at all > .substrate-profile; python3 send.py";
    const { came } = await sending({ cmd }, async () => {
      edit("default", networkPolicy(["registry.example.test"]));
      await reload();
    });
    expect(came).toBe("cut");
  });

  describe("of a policy that a profile narrows", () => {
    const narrow = networkPolicy(LIST).replace("id: default", "id: narrow\nselectable: true");
    const removeProfile = (): void => rmSync(join(place.broker.home, "policies/narrow.yaml"));
    beforeEach(() => edit("narrow", narrow));

    test("takes its name away, also when the profile is gone", async () => {
      const { came } = await sending({ profile: "narrow" }, async () => {
        removeProfile();
        edit("default", networkPolicy(["registry.example.test"]));
        await reload();
      });
      expect(came).toBe("cut");
    });

    test("opens nothing that the profile forbade, when the profile is gone", async () => {
      edit("narrow", narrow.replace(`"${NAME}:9000",`, ""));
      const dial = `until test -e gone; do sleep 0.05; done; python3 dial.py ${NAME} 9000 registry.example.test 80`;
      const { result, seen } = await place.internet.during(async () => {
        const running = place.broker.run({ cmd: `rm -f gone; ${dial}`, profile: "narrow" });
        await sleep(500);
        removeProfile();
        edit("default", `${networkPolicy(LIST)}# another text\n`);
        await reload();
        place.broker.write(path("gone"), "");
        return await running;
      });
      expect(result.stdout).toMatch(/^NXDOMAIN \d+\nconnected \d+\n$/);
      expect(seen.connections.map(({ to }) => to.port)).toEqual([80]);
    });
  });
});
