/** A broker for one stop of the tour: its policy says what no operator's should. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Home, homeLayout, prepareHome } from "../../broker/settings/home.ts";
import { endBroker, startProcess } from "../cli/commands/broker.ts";
import type { Terminal } from "../cli/terminal/terminal.ts";
import type { Guide } from "./guide.ts";

/**
 * Starts a broker in a folder of its own, with `policy` as its default one, and ends it with all that it made. The guide
 * that `act` gets speaks to it, and keeps no spans: they go with their trace.
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

/** Where a privileged broker's layers lie apart from its home, those of any other of the same user do too. */
function homeBeside({ root: known, overlay }: Home, root: string): Home {
  return homeLayout(root, dirname(overlay) === known ? undefined : dirname(overlay));
}
