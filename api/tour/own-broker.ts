/** A second broker for a stop of the tour, with a policy unfit for operators. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Home, homeLayout, prepareHome } from "../../broker/settings/home.ts";
import { endBroker, startProcess } from "../cli/commands/broker.ts";
import type { Terminal } from "../cli/terminal/terminal.ts";
import type { Guide } from "./guide.ts";

/**
 * Starts a broker in a temporary home with `policy` as the default policy, runs `act`, then ends the broker and removes the home.
 * The guide passed to `act` calls the second broker and keeps no spans, because the second trace is removed too.
 */
export async function withOwnBroker(
  guide: Guide,
  policy: string,
  act: (guide: Guide) => Promise<void>,
): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), "sb-tour-"));
  const home = homeBeside(guide.terminal.home, root);
  const environment = { ...guide.terminal.environment, SUBSTRATE_HOME: root };
  const terminal: Terminal = { ...guide.terminal, home, environment };
  try {
    prepareHome(home, terminal.uid);
    await writeFile(join(home.policies, "default.yaml"), policy);
    await startProcess(terminal, false);
    await act({ ...guide, terminal, spans: [] });
  } finally {
    await endBroker(terminal);
    for (const folder of [root, home.overlay]) await rm(folder, { recursive: true, force: true });
  }
}

/** Layout of the second home. If the first broker's overlay lies outside the first home, the second overlay lies beside it. */
function homeBeside({ root: known, overlay }: Home, root: string): Home {
  return homeLayout(root, dirname(overlay) === known ? undefined : dirname(overlay));
}
