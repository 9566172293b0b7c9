/**
 * Second names: every path at which the mount table shows a folder or file that has another name. `mount --bind`, Toolbox,
 * Distrobox, autofs and a btrfs top level make such names. Pure.
 *
 * The mount table says of each mount which file system it shows (`device`), from which folder of it (`root`), and where
 * (`point`). So (device, path in the file system) is the same for all names of one place. `st_dev` is not used: each btrfs
 * subvolume has its own, and the table has one device for all of them.
 */
import { isWithin } from "./scopes.ts";

export type Mount = {
  readonly id: string;
  /** The mount on which this one lies. */
  readonly parent: string;
  readonly device: string;
  /** The folder or file of the file system that is shown; undefined for one that was removed, and for what is no path. */
  readonly root: string | undefined;
  readonly point: string;
};

/** Another name of a place. */
export type OtherName = {
  readonly path: string;
  /** What of the place it shows: "" for all of it, else a path below it, without a slash at its start. */
  readonly part: string;
};

/** A place in a file system, whatever its names. */
type Spot = { readonly device: string; readonly path: string };

/** Reads the text of `/proc/self/mountinfo` (proc_pid_mountinfo(5)). */
export function parseMounts(mountinfo: string): readonly Mount[] {
  return mountinfo.split("\n").flatMap((line) => {
    const [id, parent, device, root, point] = line.split(" ");
    if (id === undefined || parent === undefined || device === undefined) return [];
    if (root === undefined || point === undefined) return [];
    return [{ id, parent, device, root: rootOf(unescapeOctal(root)), point: unescapeOctal(point) }];
  });
}

/** The kernel writes `//deleted` behind the name of a root that was removed; an nsfs root is `net:[…]`. */
function rootOf(root: string): string | undefined {
  return root.startsWith("/") && !root.endsWith("//deleted") ? root : undefined;
}

/** A space in a path is `\040`, a backslash `\134`. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_all, code: string) => String.fromCharCode(Number.parseInt(code, 8)));
}

/** Questions about one mount table. Paths are absolute and real. */
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

  /** Every other path that shows `path`, what lies below it, or a part of that; none that lies below `path` itself. */
  otherNames(path: string): readonly OtherName[] {
    const found = new Map<string, OtherName>();
    for (const { spot, at } of this.#spotsIn(path)) {
      for (const mount of this.#mounts) {
        const name = nameBy(mount, spot);
        if (name === undefined || isWithin(name.path, path) || this.#at(name.path) !== mount) continue;
        // A world whose root is a part of the place: to deny that name would be to deny everything.
        if (name.path === "/") continue;
        found.set(name.path, {
          path: name.path,
          part: [at, name.part].filter((part) => part !== "").join("/"),
        });
      }
    }
    return [...found.values()];
  }

  /** The mount points below a path that can be reached. */
  pointsBelow(path: string): readonly string[] {
    const below = this.#mounts.filter(({ point }) => point !== path && isWithin(point, path));
    return below.filter((mount) => this.#at(mount.point) === mount).map(({ point }) => point);
  }

  /** The place itself, and what is mounted below it. */
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

  /** The mount that shows a path: from the base upwards, at each step the mount that covers the path first. */
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

/** What a mount calls a spot, or a part of it; undefined when it shows neither. */
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
