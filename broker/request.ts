/** What a call asks for once its place is known: every rule of the request that a schema cannot say. */
import type { CheckRequest, ExecuteRequest } from "../schemas/generated/types.ts";
import type { Broker } from "./broker.ts";
import { locateProject, type Place } from "./projects.ts";
import { type Refusal, refusal } from "./refusal.ts";

/** Linux ends one argument of execve at 128 KiB with its NUL (`MAX_ARG_STRLEN`, include/uapi/linux/binfmts.h). */
const MAX_ARGUMENT = 131_071;

const SHELLS = { sh: "/bin/sh", bash: "/bin/bash" } as const;

/** The words to execute. */
export function argvOf(request: ExecuteRequest | CheckRequest): readonly string[] | Refusal {
  const shell = "shell" in request ? (request.shell ?? "sh") : "sh";
  const argv = request.argv ?? [SHELLS[shell], "-c", request.cmd ?? ""];
  const long = argv.findIndex((word) => Buffer.byteLength(word) > MAX_ARGUMENT);
  if (long === -1) return argv;
  const field = request.argv === undefined ? "cmd" : `argv[${long}]`;
  return refusal(
    "invalid_request",
    `${field} has ${Buffer.byteLength(argv[long] ?? "")} bytes and the kernel takes ${MAX_ARGUMENT} in one argument`,
    "Write the script to a file in the project and run that, or send data through stdin_b64",
  );
}

/** Project and working directory of a call; without `cwd`, the broker's own. */
export function placeOf(broker: Broker, cwd: string | undefined): Place | Refusal {
  if (cwd !== undefined) return locateProject(cwd, broker.projectRules());
  const own = locateProject(broker.startedIn, broker.projectRules());
  if (!("code" in own)) return own;
  return refusal(
    "cwd_required",
    "This call names no cwd, and the folder where the broker was started cannot be a project",
    "Send 'cwd': the full path of the project folder",
  );
}
