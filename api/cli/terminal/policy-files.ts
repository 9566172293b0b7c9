/** Where policies and their cases lie: the operator's before the shipped ones. */
import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { Complaint, type Terminal } from "./terminal.ts";

/** A name means the operator's policy, else the shipped one; what ends in `.yaml` is a file. */
export function policyFile({ home, installation, cwd }: Terminal, name: string): string {
  if (name.endsWith(".yaml")) return resolve(cwd, name);
  const own = join(home.policies, `${name}.yaml`);
  if (existsSync(own)) return own;
  const shipped = join(installation.policies, `${name}.yaml`);
  if (existsSync(shipped)) return shipped;
  throw new Complaint(`No policy is called '${name}' in '${home.policies}' or among the shipped ones`);
}

/** The files of the operator's folder, or the shipped ones where there is no such folder. */
export function ownPolicyFiles({ home, installation }: Terminal): readonly string[] {
  return yamlFiles(existsSync(home.policies) ? home.policies : installation.policies);
}

/** Each policy that a name can mean: the operator's, and the shipped ones that no file of the operator's hides. */
export function everyPolicyFile({ home, installation }: Terminal): readonly string[] {
  const own = yamlFiles(home.policies);
  const names = new Set(own.map((path) => basename(path)));
  return [...own, ...yamlFiles(installation.policies).filter((path) => !names.has(basename(path)))];
}

/**
 * Folders with the cases of the policy in a file: beside it, and, when it is one that a name can mean, the operator's and
 * the shipped ones of that name.
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
