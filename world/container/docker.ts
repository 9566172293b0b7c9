import { join } from "node:path";
import { promisify } from "node:util";
import { execFile } from "node:child_process";
import { SYSTEM } from "../model/system.ts";
import { makeEmptyRoot } from "./empty-root.ts";
import { type ContainerProgram, runProgram } from "./program.ts";
import {
  addCapabilities,
  CHANGING_USER_CAPABILITIES,
  type ContainerRuntime,
  ROOT_CAPABILITIES,
} from "./runtime.ts";

export type DockerOptions = {
  readonly environment: Readonly<Record<string, string>>;
  readonly uid: number;
  /** A folder of the broker's, for the containers' root. */
  readonly folder: string;
};

/**
 * docker starts only from an image, so the broker makes an image of mount points alone. No image is pulled. New mount points need
 * a new number.
 */
const IMAGE = "substrate-empty-root:1";

/** Configures docker: a daemon, as root, starts init, which switches to the caller before making a user namespace. */
export function docker({ environment, uid, folder }: DockerOptions): ContainerRuntime {
  const program: ContainerProgram = {
    words: ["docker"],
    environment,
    hint: "Start docker, and see that 'docker info' works for this user",
  };
  return {
    name: "docker",
    program,
    options: [
      // A daemon that maps users would make files of unknown owners.
      "--userns=host",
      "--pull=never",
      ...addCapabilities(uid === 0 ? ROOT_CAPABILITIES : CHANGING_USER_CAPABILITIES),
    ],
    prepare: async (signal) => {
      const known = await runProgram(program, ["images", "--quiet", IMAGE], signal);
      if (known.trim() === "") await makeImage(program, folder, signal);
      return [IMAGE];
    },
    logOptions: () => ["--log-driver=none"],
    complaint: () => Promise.resolve(""),
  };
}

async function makeImage(program: ContainerProgram, folder: string, signal: AbortSignal): Promise<void> {
  const root = join(folder, "root");
  const archive = join(folder, "root.tar");
  await makeEmptyRoot(root);
  await promisify(execFile)("tar", ["--create", "--file", archive, "--directory", root, "."], {
    env: SYSTEM,
    signal,
  });
  await runProgram(program, ["import", archive, IMAGE], signal);
}
