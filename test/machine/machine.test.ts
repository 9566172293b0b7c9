/** A whole machine, one boot for all rows: each test goes on with the machine that the one before left. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe } from "vitest";
import { packed } from "../support/programs/package.ts";
import { skippedTest } from "../support/run/skips.ts";
import { Guest } from "./guest.ts";
import { whyNoMachine } from "./image.mjs";
import { limitRows } from "./limits.ts";
import { installRow, recoveryRows, systemRows } from "./units.ts";

/** An emulated processor on a busy machine. */
const PATIENCE_MS = 10 * 60_000;

const why = whyNoMachine();

describe.runIf(why === undefined)(
  "in a machine with systemd and cgroups v2",
  { timeout: PATIENCE_MS },
  () => {
    let guest: Guest;
    let folder: string;
    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), "sb-vm-"));
      guest = await Guest.boot(packed(folder));
    }, PATIENCE_MS);
    afterAll(() => {
      guest?.off();
      rmSync(folder, { recursive: true, force: true });
    });

    installRow(() => guest);
    limitRows(() => guest);
    recoveryRows(() => guest);
    systemRows(() => guest);
  },
);

if (why !== undefined) skippedTest("limits and the service on a real systemd, in a virtual machine", why);
