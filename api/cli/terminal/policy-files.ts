/** Finds the files of policies and cases: the operator's before the shipped. */
import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { Complaint, type Terminal } from "./terminal.ts";

/** Resolves a policy argument: a file if ending in `.yaml`, else the name of an operator's or shipped policy. */
export function policyFile({ home, installation, cwd }: Terminal, name: string): string {
  if (name.endsWith(".yaml")) return resolve(cwd, name);
  const own = join(home.policies, `${name}.yaml`);
  if (existsSync(own)) return own;
  const shipped = join(installation.policies, `${name}.yaml`);
  if (existsSync(shipped)) return shipped;
  throw new Complaint(`Cannot find policy '${name}' in '${home.policies}' or among the shipped policies`);
}

/** Lists the operator's policy files; the shipped policies if the operator's folder is missing. */
export function ownPolicyFiles({ home, installation }: Terminal): readonly string[] {
  return yamlFiles(existsSync(home.policies) ? home.policies : installation.policies);
}

/** Lists all policies reachable by name: the operator's, and the shipped ones without an operator's file of the same name. */
export function everyPolicyFile({ home, installation }: Terminal): readonly string[] {
  const own = yamlFiles(home.policies);
  const names = new Set(own.map((path) => basename(path)));
  return [...own, ...yamlFiles(installation.policies).filter((path) => !names.has(basename(path)))];
}

/**
 * Lists the folders with a policy's cases: beside the file; for a policy reachable by name, the operator's and the shipped folder
 * of the name.
 */
export function caseFolders({ home, installation }: Terminal, file: string): readonly string[] {
  const folder = dirname(file);
  const isNamed = folder === home.policies || folder === installation.policies;
  const roots = isNamed ? [home.policies, installation.policies] : [folder];
  return roots.map((root) => join(root, "cases", basename(file, ".yaml")));
}

function yamlFiles(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(".yaml"))
    .sort()
    .map((name) => join(folder, name));
}
