/**
 * Finds second names: every path at which the mount table shows a folder or file known by another name. `mount --bind`, Toolbox,
 * Distrobox, autofs and a btrfs top level create such names. Pure.
 *
 * Each line of the mount table names a file system (`device`), the folder shown from there (`root`), and the mount point
 * (`point`). So the pair (device, path in the file system) is the same for all names of a place. `st_dev` is unsuitable: each
 * btrfs subvolume has its own, but the table has one device for all of them.
 */
import { isWithin } from "./scopes.ts";

export type Mount = {
  readonly id: string;
  /** Id of the mount below. */
  readonly parent: string;
  readonly device: string;
  /** The shown folder or file of the file system; undefined if removed, or not a path. */
  readonly root: string | undefined;
  readonly point: string;
  /** Name of the kind of file system; "" if the line has none. */
  readonly type: string;
};

/** Another name of a place. */
export type OtherName = {
  readonly path: string;
  /** The visible part of the place: "" for all, otherwise a path below the place, without a leading slash. */
  readonly part: string;
};

/** A place in a file system, independent of its names. */
type Spot = { readonly device: string; readonly path: string };

/** Parses the text of `/proc/self/mountinfo` (proc_pid_mountinfo(5)). */
export function parseMounts(mountinfo: string): readonly Mount[] {
  return mountinfo.split("\n").flatMap((line) => {
    const [id, parent, device, root, point] = line.split(" ");
    if (id === undefined || parent === undefined || device === undefined) return [];
    if (root === undefined || point === undefined) return [];
    const type = / - (\S+)/.exec(line)?.[1] ?? "";
    return [{ id, parent, device, root: rootOf(unescapeOctal(root)), point: unescapeOctal(point), type }];
  });
}

/** The kernel appends `//deleted` to a removed root; an nsfs root is `net:[…]`. */
function rootOf(root: string): string | undefined {
  return root.startsWith("/") && !root.endsWith("//deleted") ? root : undefined;
}

/** Decodes octal escapes: a space in a path is `\040`, a backslash `\134`. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_all, code: string) => String.fromCharCode(Number.parseInt(code, 8)));
}

/** Answers questions about one mount table. Paths are absolute and real. */
export class MountTable {
  readonly #mounts: readonly Mount[];
  readonly #on = new Map<string, Mount[]>();
  readonly #base: Mount | undefined;

  constructor(mounts: readonly Mount[]) {
    this.#mounts = mounts;
    const ids = new Set(mounts.map(({ id }) => id));
    for (const mount of mounts) {
      if (mount.id === mount.parent) continue;
      const others = this.#on.get(mount.parent);
      if (others === undefined) this.#on.set(mount.parent, [mount]);
      else others.push(mount);
    }
    this.#base = mounts.find(({ id, parent, point }) => point === "/" && (id === parent || !ids.has(parent)));
  }

  /** Returns every other path that shows `path`, its content, or a part of its content; paths below `path` itself are left out. */
  otherNames(path: string): readonly OtherName[] {
    const found = new Map<string, OtherName>();
    for (const { spot, at } of this.#spotsIn(path)) {
      for (const mount of this.#mounts) {
        const name = nameBy(mount, spot);
        if (name === undefined || isWithin(name.path, path) || this.#at(name.path) !== mount) continue;
        // The root mount shows a part of the place: to deny `/` would deny everything.
        if (name.path === "/") continue;
        found.set(name.path, {
          path: name.path,
          part: [at, name.part].filter((part) => part !== "").join("/"),
        });
      }
    }
    return [...found.values()];
  }

  /** Returns the reachable mount points below a path. */
  pointsBelow(path: string): readonly string[] {
    const below = this.#mounts.filter(({ point }) => point !== path && isWithin(point, path));
    return below.filter((mount) => this.#at(mount.point) === mount).map(({ point }) => point);
  }

  /** Returns the place of the path itself, and the places mounted below. */
  #spotsIn(path: string): readonly { readonly spot: Spot; readonly at: string }[] {
    const own = this.#spotOf(path);
    const below = this.#mounts.flatMap((mount) => {
      const { point, root, device } = mount;
      if (root === undefined || point === path || !isWithin(point, path) || this.#at(point) !== mount)
        return [];
      return [{ spot: { device, path: root }, at: relative(point, path) }];
    });
    return own === undefined ? below : [{ spot: own, at: "" }, ...below];
  }

  #spotOf(path: string): Spot | undefined {
    const mount = this.#at(path);
    if (mount?.root === undefined) return undefined;
    return { device: mount.device, path: join(mount.root, relative(path, mount.point)) };
  }

  /** Returns the mount that shows a path: climbs from the base, at each step to the mount with the shortest covering mount point. */
  #at(path: string): Mount | undefined {
    let mount = this.#base;
    for (;;) {
      const over = (mount === undefined ? [] : (this.#on.get(mount.id) ?? []))
        .filter(({ point }) => isWithin(path, point))
        .reduce<Mount | undefined>(
          (first, each) => (first === undefined || each.point.length < first.point.length ? each : first),
          undefined,
        );
      if (over === undefined) return mount;
      mount = over;
    }
  }
}

/** Returns a mount's name for a place or a part of a place; undefined if neither is shown. */
function nameBy({ device, root, point }: Mount, spot: Spot): OtherName | undefined {
  if (root === undefined || device !== spot.device) return undefined;
  if (isWithin(spot.path, root)) return { path: join(point, relative(spot.path, root)), part: "" };
  return isWithin(root, spot.path) ? { path: point, part: relative(root, spot.path) } : undefined;
}

function relative(path: string, folder: string): string {
  return folder === "/" ? path.slice(1) : path.slice(folder.length + 1);
}

function join(folder: string, below: string): string {
  if (below === "") return folder;
  return folder === "/" ? `/${below}` : `${folder}/${below}`;
}
