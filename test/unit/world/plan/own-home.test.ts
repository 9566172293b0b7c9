import { describe, expect, test } from "vitest";
import type { WorldSpec } from "../../../../world/backend.ts";
import type { HostFacts } from "../../../../world/plan/host-facts.ts";
import { mountPlan } from "../../../../world/plan/mounts.ts";
import { pinsFor } from "../../../../world/plan/own-home.ts";
import { host, lines, PROJECT, spec } from "../../../support/world/planned.ts";

const HOME = "/home/ann";
const FOLDER = `${HOME}/.substrate/homes/agent`;
const BOUND = `bind ${FOLDER} ${HOME} rw`;

type Files = Partial<WorldSpec["files"]>;

function own(files: Files = {}, change: Partial<WorldSpec> = {}): WorldSpec {
  return spec({
    ownHome: { path: HOME, folder: FOLDER, identity: "1:9", way: null },
    hidden: [`${HOME}/.substrate`],
    ...change,
    files: { ...spec().files, ...files },
  });
}

/** A host whose `/home` has two users. */
function users(change: Partial<HostFacts> = {}): HostFacts {
  const folders: Readonly<Record<string, readonly string[]>> = {
    "/": ["home", "usr"],
    "/home": ["ann", "bob"],
  };
  return { ...host(), folders: (path) => folders[path] ?? [], ...change };
}

function bindsIn(plan: readonly string[]): readonly string[] {
  return plan.filter((line) => line.split(" ").some((word) => word === HOME || word.startsWith(`${HOME}/`)));
}

describe("the plan of a world with a home of its own", () => {
  test("covers the real home, after every host tree, and shows the project in it", () => {
    const plan = lines(mountPlan(own(), host()));
    expect(bindsIn(plan)).toEqual([`hide ${HOME}/.substrate`, BOUND, `bind ${PROJECT} ${PROJECT} rw`]);
    expect(plan.indexOf(BOUND)).toBeGreaterThan(plan.findLastIndex((line) => line.startsWith("tmpfs")));
    expect(mountPlan(own(), host()).homePlaces).toEqual([{ path: PROJECT, kind: "folder" }]);
  });

  test("without the option no plan has any of it", () => {
    const plan = mountPlan(spec(), host());
    expect(lines(plan).join("\n")).not.toContain("homes");
    expect(plan.homePlaces).toEqual([]);
  });

  test("pins each folder above a mount point, from shallow to deep, before anything is mounted there", () => {
    const project = `${HOME}/work/clients/app`;
    const plan = lines(mountPlan(own({ write: [`${project}/**`] }, { project }), host()));
    expect(bindsIn(plan).slice(1)).toEqual([
      BOUND,
      `bind ${FOLDER}/work ${HOME}/work rw`,
      `bind ${FOLDER}/work/clients ${HOME}/work/clients rw`,
      `bind ${project} ${project} rw`,
    ]);
  });

  test("a scope that merely covers the home opens nothing in it, for reading or for writing", () => {
    for (const scope of ["/**", "/home/**", `${HOME}/**`, HOME]) {
      const files = { read: ["/**", scope], write: [`${PROJECT}/**`, scope], scratch: [scope] };
      const { mounts, homePlaces, zones } = mountPlan(own(files), users({ layers: "/layers" }));
      const plan = bindsIn(lines({ mounts } as never));
      expect(plan.filter((line) => line.startsWith("bind"))).toEqual([
        BOUND,
        `bind ${PROJECT} ${PROJECT} rw`,
      ]);
      expect(plan.filter((line) => line.startsWith("veil"))).toEqual([]);
      expect(homePlaces.map(({ path }) => path)).toEqual([PROJECT]);
      expect(zones.filter(({ kind }) => kind === "watch").map(({ path }) => path)).not.toContain("/home");
    }
  });

  test("a writable scope around the home still opens the other folders there, and the project", () => {
    const plan = lines(mountPlan(own({ write: ["/home/**"] }), users()));
    expect(plan).toContain("bind /home/bob /home/bob rw");
    expect(plan).toContain(`bind ${PROJECT} ${PROJECT} rw`);
    expect(plan).not.toContain("bind /home /home rw");
    const real = lines(mountPlan(spec({ files: { ...spec().files, write: ["/home/**"] } }), users()));
    expect(real).toContain("bind /home /home rw");
  });

  test("shows what is named below the home: folders below a veil, files read-only, writable ones as they are", () => {
    const files = {
      read: ["/**", `${HOME}/.config/tool/**`, `${HOME}/.gitconfig`, `${HOME}/.profile.d`],
      write: [`${PROJECT}/**`, `${HOME}/.cache/**`],
      denyRead: [`${HOME}/.config/tool/token`, `${HOME}/.ssh`],
    };
    const facts = host({ [`${HOME}/.gitconfig`]: "file" });
    const made = mountPlan(own(files), facts);
    expect(bindsIn(lines(made)).filter((line) => !line.startsWith("hide"))).toEqual([
      BOUND,
      `bind ${FOLDER}/.config ${HOME}/.config rw`,
      `bind ${HOME}/.gitconfig ${HOME}/.gitconfig ro`,
      `veil ${HOME}/.config/tool ${HOME}/.config/tool`,
      `bind ${HOME}/.cache ${HOME}/.cache rw`,
      `bind ${PROJECT} ${PROJECT} rw`,
    ]);
    expect(lines(made)).toContain(`hide ${HOME}/.config/tool/token`);
    expect(made.homePlaces).toEqual([
      { path: `${HOME}/.cache`, kind: "folder" },
      { path: `${HOME}/.gitconfig`, kind: "file" },
      { path: PROJECT, kind: "folder" },
      { path: `${HOME}/.config/tool`, kind: "folder" },
    ]);
  });

  test("nothing denied or hidden is shown, and no link is followed", () => {
    const read = ["/**", `${HOME}/.ssh/**`, `${HOME}/.substrate/**`, `${HOME}/dotfiles/**`];
    const facts = host({}, { [`${HOME}/dotfiles`]: "/home/bob" });
    const plan = lines(mountPlan(own({ read, denyRead: [`${HOME}/.ssh`] }), facts));
    expect(bindsIn(plan).filter((line) => !line.startsWith("hide"))).toEqual([
      BOUND,
      `bind ${PROJECT} ${PROJECT} rw`,
    ]);
  });

  test("hides the home at its other names, also in a folder bound as it is, but no tree of programs mounted in it", () => {
    const names = ["/var/disk/ann", "/home/bob/share/ann", "/usr/local"];
    const facts = host();
    const other = (path: string) => (path === HOME ? names.map((name) => ({ path: name, part: "" })) : []);
    const plan = lines(
      mountPlan(own({ write: [`${PROJECT}/**`, "/home/bob/share/**"] }), { ...facts, otherNames: other }),
    );
    expect(plan).toContain("hide /var/disk/ann");
    expect(plan).toContain("mask /home/bob/share/ann");
    expect(plan.join("\n")).not.toContain("/usr/local");
    const real = lines(mountPlan(spec(), { ...facts, otherNames: other }));
    expect(real.join("\n")).not.toContain("/var/disk/ann");
  });

  test("masks denied names of a shared folder that takes no veil, and no name of the covered rest", () => {
    const shared = `${HOME}/.config`;
    const files = {
      read: ["/**", `${shared}/**`],
      denyRead: [`${shared}/token`, `${HOME}/.ssh`],
    };
    const facts = users({ unveilable: new Set(["/home", shared]) });
    const made = mountPlan(own(files), facts);
    expect(lines(made)).toContain(`bind ${shared} ${shared} ro`);
    expect(lines(made).filter((line) => line.startsWith("mask /home"))).toEqual([`mask ${shared}/token`]);
    expect(made.unhidden).toBe(1);
  });

  test("a world that may read only some paths gets the home as a folder of its own", () => {
    const plan = lines(mountPlan(own({ read: ["/usr/**", `${PROJECT}/**`] }), host()));
    expect(plan.indexOf(`dir ${HOME} 755`)).toBe(plan.indexOf(BOUND) - 1);
    expect(plan).not.toContain(`dir ${PROJECT} 755`);
    expect(plan.at(-1)).toBe("closed");
  });

  test("a home below /tmp is placed after the private /tmp", () => {
    const ownHome = { path: "/tmp/ann", folder: "/srv/homes/agent", identity: "1:9", way: null };
    const plan = lines(
      mountPlan(own({ write: ["/tmp/ann/work/**"] }, { ownHome, project: "/tmp/ann/work" }), host()),
    );
    const order = [
      "dir /tmp/ann 755",
      "bind /srv/homes/agent /tmp/ann rw",
      "bind /tmp/ann/work /tmp/ann/work rw",
    ];
    const at = order.map((line) => plan.indexOf(line));
    expect(plan.findIndex((line) => line.startsWith("tmpfs /tmp "))).toBeLessThan(at[0] ?? -1);
    expect(at).toEqual([...at].sort((a, b) => a - b));
  });

  test("a project that may not be written, and a git folder elsewhere in the home, are bound in place", () => {
    const gitFolder = `${HOME}/main/.git`;
    const files = { write: [`${gitFolder}/**`] };
    const plan = lines(mountPlan(own(files, { gitFolder }), host()));
    expect(bindsIn(plan).slice(1)).toEqual([
      BOUND,
      `bind ${FOLDER}/main ${HOME}/main rw`,
      `bind ${gitFolder} ${gitFolder} rw`,
      `bind ${PROJECT} ${PROJECT} ro`,
    ]);
  });

  test("a datagram socket of the covered home is not masked; one in a shared folder is", () => {
    const sockets = [`${HOME}/.run/log`, `${HOME}/.cache/log`];
    const facts = {
      ...host(Object.fromEntries(sockets.map((path) => [path, "other"]))),
      datagramSockets: sockets,
      unveilable: new Set(["/home"]),
    };
    const plan = lines(mountPlan(own({ write: [`${PROJECT}/**`, `${HOME}/.cache/**`] }), facts));
    expect(plan.filter((line) => line.startsWith("mask /home"))).toEqual([`mask ${HOME}/.cache/log`]);
  });

  test("another world keeps the folders above and at a mount point, unless it has a mount of its own there", () => {
    const theirs = [
      { path: `${HOME}/work/a/app`, kind: "folder" },
      { path: `${HOME}/.gitconfig`, kind: "file" },
    ] as const;
    const all = [`${HOME}/work`, `${HOME}/work/a`, `${HOME}/work/a/app`];
    expect(pinsFor({ path: HOME }, theirs, [])).toEqual(all);
    expect(pinsFor({ path: HOME }, theirs, [{ path: `${HOME}/work/a`, kind: "folder" }])).toEqual([all[0]]);
  });
});
