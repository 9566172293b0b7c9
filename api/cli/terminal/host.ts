import { homedir } from "node:os";
import type { Host } from "../../startup/services.ts";
import type { Terminal } from "./terminal.ts";

/** The host as the service managers see it. */
export function hostOf({ home, installation, environment, uid }: Terminal): Host {
  return { home, installation, environment, uid, userHome: homedir(), platform: process.platform };
}
