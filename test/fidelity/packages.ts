/** Packages of this checkout for a row's project, with all that they need, so that no row asks a registry. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";

type Locked = {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
};

/** Copies them below `project/node_modules`, where they lie here. Throws for one that is not installed. */
export function copyPackages(checkout: string, names: readonly string[], project: string): void {
  const record = readFileSync(join(checkout, "node_modules/.package-lock.json"), "utf8");
  const { packages } = JSON.parse(record) as { packages: Readonly<Record<string, Locked>> };
  const wanted = new Set<string>();
  for (const name of names) collect(packages, `node_modules/${name}`, wanted);
  for (const path of wanted) {
    mkdirSync(dirname(join(project, path)), { recursive: true });
    cpSync(join(checkout, path), join(project, path), { recursive: true, verbatimSymlinks: true });
  }
  linkPrograms(checkout, wanted, project);
}

/** Their programs, as npm links them. */
function linkPrograms(checkout: string, wanted: ReadonlySet<string>, project: string): void {
  const [from, to] = [join(checkout, "node_modules/.bin"), join(project, "node_modules/.bin")];
  mkdirSync(to);
  for (const name of readdirSync(from)) {
    const target = readlinkSync(join(from, name));
    const isCopied = [...wanted].some((path) => `node_modules/${target.slice(3)}`.startsWith(`${path}/`));
    if (isCopied) symlinkSync(target, join(to, name));
  }
}

function collect(packages: Readonly<Record<string, Locked>>, path: string, wanted: Set<string>): void {
  const locked = packages[path];
  if (locked === undefined) throw new Error(`'${path}' is not installed in this checkout`);
  if (wanted.has(path)) return;
  wanted.add(path);
  const { dependencies = {}, optionalDependencies = {}, peerDependencies = {} } = locked;
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })) {
    const found = resolve(packages, path, name);
    // Optional ones are for other machines, or were not wanted, ignoring: what needs one says so itself.
    if (found !== undefined) collect(packages, found, wanted);
  }
}

/** As Node finds it: in the package's own folder, or in one above. */
function resolve(packages: Readonly<Record<string, Locked>>, from: string, name: string): string | undefined {
  const folders = from
    .split("/node_modules/")
    .map((_part, index, parts) => [...parts.slice(0, parts.length - index), name].join("/node_modules/"));
  return [...folders, `node_modules/${name}`].find(
    (path) => packages[path] !== undefined && existsSync(path),
  );
}
