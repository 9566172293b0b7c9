/** Every row of the table. */
import type { Workload } from "./workload.ts";
import { ARCHIVES } from "./workloads/archives.ts";
import { COMPILERS } from "./workloads/compilers.ts";
import { FILES } from "./workloads/files.ts";
import { GIT } from "./workloads/git.ts";
import { GIT_LESS_OFTEN } from "./workloads/git-less-often.ts";
import { LANGUAGES } from "./workloads/languages.ts";
import { INSTALLS } from "./workloads/installs.ts";
import { PACKAGES } from "./workloads/packages.ts";
import { PROCESSES } from "./workloads/processes.ts";
import { SERVERS } from "./workloads/servers.ts";
import { SHELL } from "./workloads/shell.ts";
import { SYSTEM } from "./workloads/system.ts";
import { TEXT } from "./workloads/text.ts";

export const WORKLOADS: readonly Workload[] = [
  ...GIT,
  ...GIT_LESS_OFTEN,
  ...SYSTEM,
  ...PACKAGES,
  ...INSTALLS,
  ...COMPILERS,
  ...LANGUAGES,
  ...SERVERS,
  ...SHELL,
  ...PROCESSES,
  ...FILES,
  ...TEXT,
  ...ARCHIVES,
];
