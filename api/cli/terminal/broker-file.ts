import { existsSync, readFileSync } from "node:fs";
import type { BrokerFile } from "../../../schemas/generated/types.ts";
import { validateBrokerFile } from "../../../schemas/generated/validators.js";
import type { Terminal } from "./terminal.ts";

/** What the broker wrote; undefined when it is not there, or is not what a broker writes. */
export function readBrokerFile(terminal: Terminal): BrokerFile | undefined {
  if (!existsSync(terminal.home.brokerFile)) return undefined;
  try {
    const file: unknown = JSON.parse(readFileSync(terminal.home.brokerFile, "utf8"));
    return validateBrokerFile(file) ? file : undefined;
  } catch {
    return undefined;
  }
}
