import { existsSync, readFileSync } from "node:fs";
import type { BrokerFile } from "../../../schemas/generated/types.ts";
import { validateBrokerFile } from "../../../schemas/generated/validators/broker-file.js";
import type { Terminal } from "./terminal.ts";

/** Reads broker.json; undefined for a missing or invalid file. */
export function readBrokerFile(terminal: Terminal): BrokerFile | undefined {
  if (!existsSync(terminal.home.brokerFile)) return undefined;
  try {
    const file: unknown = JSON.parse(readFileSync(terminal.home.brokerFile, "utf8"));
    return validateBrokerFile(file) ? file : undefined;
  } catch {
    return undefined;
  }
}
