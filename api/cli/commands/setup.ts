import { spawn } from "node:child_process";
import { once } from "node:events";
import { EXIT_SUBSTRATE, type Terminal } from "../terminal/terminal.ts";

/** `substrate setup`, a script that runs before the native parts can. */
export async function setUp({ installation }: Terminal): Promise<number> {
  const child = spawn(process.execPath, [installation.setup], { stdio: "inherit" });
  const [code] = (await once(child, "exit")) as [number | null];
  return code ?? EXIT_SUBSTRATE;
}
