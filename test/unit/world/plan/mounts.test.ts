import { describe, expect, test } from "vitest";
import { denialWords } from "../../../../world/plan/denials.ts";
import type { HostFacts } from "../../../../world/plan/host-facts.ts";
import type { SharedSocket } from "../../../../world/backend.ts";
import { mountPlan } from "../../../../world/plan/mounts.ts";
import { host, lines, PROJECT, spec } from "../../../support/world/planned.ts";

describe("the mount plan", () => {
  test("starts with the whole host read-only and opens only the project", () => {
    const plan = lines(mountPlan(spec(), host()));
    expect(plan[0]).toBe("root");
    expect(plan.filter((line) => line.endsWith(" rw"))).toEqual([`bind ${PROJECT} ${PROJECT} rw`]);
  });

  test("a project that the policy does not let write is seen as every host tree is, and bound read-only below /tmp", () => {
    const files = { ...spec().files, write: [] };
    expect(lines(mountPlan(spec({ files }), host())).filter((line) => line.startsWith("bind"))).toEqual([]);
    expect(lines(mountPlan(spec({ files, project: "/tmp/work" }), host()))).toContain(
      "bind /tmp/work /tmp/work ro",
    );
  });

  test("a git folder outside the project is bound once, with its denials, also below a private folder", () => {
    const gitFolder = "/tmp/main/.git";
    const write = [...spec().files.write, `${gitFolder}/**`];
    const files = { ...spec().files, write, denyWrite: [`${gitFolder}/hooks`] };
    const plan = lines(mountPlan(spec({ gitFolder, files }), host()));
    expect(plan.filter((line) => line.includes(gitFolder))).toEqual([
      `dir ${gitFolder} 755`,
      `bind ${gitFolder} ${gitFolder} rw`,
    ]);
    const { zones } = mountPlan(spec({ gitFolder, files }), host());
    expect(zones).toContainEqual({ kind: "watch", path: gitFolder });
    const overlay = mountPlan(spec({ gitFolder, files, access: { kind: "overlay", layers: "/l" } }), host());
    expect(lines(overlay)).toContain(`bind ${gitFolder} ${gitFolder} ro`);
    const swapped = lines(mountPlan(spec({ gitFolder, files }), host({}, { [gitFolder]: "/victim/.git" })));
    expect(swapped.filter((line) => line.startsWith("bind") && line.includes(".git"))).toEqual([]);
  });

  test("a project below a private folder is bound in place after the private folder is made", () => {
    const project = "/tmp/work";
    const plan = lines(
      mountPlan(spec({ project, files: { ...spec().files, write: [`${project}/**`] } }), host()),
    );
    const order = [
      "tmpfs /tmp mode=1777,size=12%,nr_inodes=262144",
      "dir /tmp/work 755",
      "bind /tmp/work /tmp/work rw",
    ].map((line) => plan.indexOf(line));
    expect(order).not.toContain(-1);
    expect(order).toEqual([...order].sort((a, b) => a - b));
  });

  test("what takes away comes after everything that opens", () => {
    const files = {
      read: ["/**"],
      denyRead: [`${PROJECT}/.env`],
      write: [`${PROJECT}/**`, "/home/ann/.cache/**"],
      denyWrite: [`${PROJECT}/.git/hooks`],
      seal: [],
    };
    const plan = lines(
      mountPlan(
        spec({ files, hidden: ["/home/ann/.substrate"], sealed: [`${PROJECT}/node_modules`] }),
        host(),
      ),
    );
    const mountsOf = plan.findLastIndex((line) => line.endsWith(" rw"));
    expect(plan.indexOf(`readonly ${PROJECT}/node_modules`)).toBeGreaterThan(mountsOf);
  });

  test("names denied in the project are init's to guard, and names denied elsewhere are hidden below a veil", () => {
    const files = {
      read: ["/**"],
      denyRead: [`${PROJECT}/**/.env`, "/home/ann/.ssh", "/etc/shadow"],
      write: [`${PROJECT}/**`],
      denyWrite: [`${PROJECT}/.git/hooks`],
      seal: [],
    };
    const plan = mountPlan(spec({ files, hidden: ["/home/ann/.substrate"] }), {
      ...host(),
      folders: () => ["home", "etc"],
    });
    expect(lines(plan).slice(0, 6)).toEqual([
      "root",
      "hide /etc/shadow",
      "hide /home/ann/.ssh",
      "hide /home/ann/.substrate",
      "veil /home /home",
      "veil /etc /etc",
    ]);
    const guarded = plan.denied.map((name) => denialWords(name).join(" "));
    expect(guarded).toContain("r Lhome Lann Lwork D L.env");
    expect(guarded).toContain("w Lhome Lann Lwork L.git Lhooks");
    expect(guarded.filter((words) => words.startsWith("h"))).toEqual([]);
    expect(plan.zones[0]).toEqual({ kind: "watch", path: PROJECT });
  });

  test("a name of root's folder that modes keep from the user already costs no overlay of that folder", () => {
    const files = { ...spec().files, denyRead: ["/etc/shadow", "/home/ann/.ssh"] };
    const facts: HostFacts = {
      ...host(),
      folders: () => ["home", "etc"],
      userNamespace: true,
      keptByModes: new Set(["/etc/shadow", "/etc/gshadow"]),
    };
    const plan = lines(mountPlan(spec({ files }), facts)).join("\n");
    expect(plan).not.toMatch(/\/etc\b.*shadow|veil \/etc/);
    expect(plan).toContain("hide /home/ann/.ssh");
  });

  test("a tree with a mount point below it is veiled in parts, and one that refused a veil is masked instead", () => {
    const folders: Record<string, readonly string[]> = { "/": ["var", "home"], "/var": ["lib", "log"] };
    const facts: HostFacts = {
      ...host(),
      folders: (path) => folders[path] ?? [],
      mountPoints: ["/", "/var/lib/docker"],
      unveilable: new Set(["/home"]),
    };
    const files = { ...spec().files, denyRead: ["/home/ann/.ssh"] };
    const plan = lines(mountPlan(spec({ files }), facts));
    // Root's overlay may lie over a folder with a mount below, which it does not show.
    expect(plan.filter((line) => line.startsWith("veil"))).toEqual([
      "veil /var /var",
      "veil /var/lib/docker /var/lib/docker",
    ]);
    expect(plan).toContain("mask /home/ann/.ssh");
    expect(mountPlan(spec({ files }), facts).unhidden).toBe(1);
    expect(mountPlan(spec({ files }), { ...facts, unveilable: new Set() }).unhidden).toBe(0);
    expect(plan.join("\n")).not.toContain("hide");
  });

  test("an ordinary user's folder with a mount below it is filled by init, and a mount that takes no veil is bound", () => {
    const folders: Record<string, readonly string[]> = {
      "/": ["home"],
      "/home": ["ann"],
      "/home/ann": ["mnt", "work"],
    };
    const facts: HostFacts = {
      ...host(),
      folders: (path) => folders[path] ?? [],
      mountPoints: ["/", "/home/ann/mnt"],
      userNamespace: true,
    };
    const files = { ...spec().files, denyRead: ["/home/ann/.ssh", "/home/ann/mnt/key"] };
    const made = mountPlan(spec({ files }), facts);
    expect(lines(made).slice(0, 7)).toEqual([
      "root",
      "hide /home/ann/.ssh",
      "hide /home/ann/mnt/key",
      "spine /home",
      "spine /home/ann",
      "fill /home",
      "fill /home/ann",
    ]);
    expect(lines(made)).toContain("sources /dev/.trees");
    expect(made).toMatchObject({ unhidden: 0, bare: [] });
    const refused = mountPlan(spec({ files }), { ...facts, unveilable: new Set(["/home/ann/mnt"]) });
    expect(refused).toMatchObject({ unhidden: 1, bare: ["/home/ann/mnt"] });
    const stick = {
      unveilable: new Set(["/home/ann/mnt"]),
      reachesNoPipes: (path: string) => path === "/home/ann/mnt",
    };
    expect(mountPlan(spec({ files }), { ...facts, ...stick })).toMatchObject({ unhidden: 1, bare: [] });
    expect(lines(refused)).toEqual(
      expect.arrayContaining([
        "spine /home/ann/mnt",
        "bind /home/ann/mnt /home/ann/mnt ro",
        "mask /home/ann/mnt/key",
      ]),
    );
  });

  test("a denied name whose folder is missing is hidden with the topmost missing folder", () => {
    const files = { ...spec().files, denyRead: ["/home/ann/.config/gh/hosts"] };
    const missing = { "/home/ann/.config": "missing", "/home/ann/.config/gh": "missing" } as const;
    expect(lines(mountPlan(spec({ files }), host(missing)))).toContain("hide /home/ann/.config");
  });

  test("datagram sockets of the host are masked where a bind would show them, whatever text was bound, and nothing else is", () => {
    const datagramSockets = [
      `${PROJECT}/dev.sock`,
      "/home/ann/agent.sock",
      "/run/docker.sock",
      `${PROJECT}/../../../tmp/x`,
      `${PROJECT}/src/main.c`,
      `${PROJECT}/src/../twice.sock`,
    ];
    const kinds = {
      [`${PROJECT}/dev.sock`]: "other",
      [`${PROJECT}/twice.sock`]: "other",
      "/tmp/x": "other",
    } as const;
    const plan = mountPlan(spec(), {
      ...host({ ...kinds, "/home/ann/agent.sock": "other" }),
      datagramSockets,
    });
    expect(lines(plan).filter((line) => line.startsWith("mask") && !/ \/(?:proc|sys)/.test(line))).toEqual([
      `mask ${PROJECT}/dev.sock`,
      `mask ${PROJECT}/twice.sock`,
    ]);
  });

  test("a shared socket is bound where the host's file is not seen as it is, and named to init", () => {
    const shared = (source: string, target = source): SharedSocket => ({
      name: source,
      source,
      target,
      identity: "1:2",
    });
    const sockets = [
      shared("/tmp/ssh-1/agent.2", "/run/substrate-ssh-agent.sock"),
      { ...shared("/run/user/1000/gnupg/S.gpg-agent"), folderMode: "700" },
      shared("/home/ann/tool.sock"),
      shared(`${PROJECT}/dev.sock`),
      shared("/home/ann/.secret/s"),
      shared("/home/ann/gone.sock"),
    ];
    const kinds = Object.fromEntries(sockets.slice(0, 5).map(({ source }) => [source, "other" as const]));
    const files = { ...spec().files, denyRead: ["/home/ann/.secret"] };
    const plan = mountPlan(spec({ sockets, files }), host(kinds));
    const lists = lines(plan).filter((line) => /sock|gnupg|\/run\/user/.test(line));
    expect(lists).toEqual([
      "file /run/substrate-ssh-agent.sock",
      "bind /tmp/ssh-1/agent.2 /run/substrate-ssh-agent.sock ro",
      "dir /run/user/1000 700",
      "dir /run/user/1000/gnupg 700",
      "file /run/user/1000/gnupg/S.gpg-agent",
      "bind /run/user/1000/gnupg/S.gpg-agent /run/user/1000/gnupg/S.gpg-agent ro",
      "bind /home/ann/tool.sock /home/ann/tool.sock ro",
    ]);
    expect(plan.sockets).toEqual(sockets.slice(0, 4).map(({ target }) => target));
    const isolated = mountPlan(spec({ sockets, access: { kind: "overlay", layers: "/l" } }), host(kinds));
    expect(lines(isolated)).toContain(`bind ${PROJECT}/dev.sock ${PROJECT}/dev.sock ro`);
  });

  test("a single writable file opens no folder above it, whether the project lies there, a git folder or an installation", () => {
    const write = ["/home/ann/.gitconfig", `${PROJECT}/notes.txt`, "/home/ann/main/.git/info"];
    const plan = mountPlan(
      spec({
        files: { ...spec().files, write },
        gitFolder: "/home/ann/main/.git",
        sealed: ["/home/ann/substrate/.build", `${PROJECT}/packages`],
      }),
      host(Object.fromEntries(write.map((path) => [path, "file"]))),
    );
    const opened = lines(plan).filter((line) => line.endsWith(" rw"));
    expect(opened.sort()).toEqual(write.map((path) => `bind ${path} ${path} rw`).sort());
  });

  test("a writable path in the installation is not bound: the installation is read-only, whatever a policy says", () => {
    const write = [`${PROJECT}/**`, "/opt/substrate/.build/extra/**", "/opt/substrate/.build/init"];
    const facts = host({ "/opt/substrate/.build/init": "file" });
    const plan = lines(
      mountPlan(spec({ files: { ...spec().files, write }, sealed: ["/opt/substrate/.build"] }), facts),
    );
    expect(plan.filter((line) => line.endsWith(" rw"))).toEqual([`bind ${PROJECT} ${PROJECT} rw`]);
  });

  test("a scratch folder that the host does not have is left out where no veil makes its mount point", () => {
    const files = { ...spec().files, scratch: ["/home/ann/.npm/**"] };
    const missing = { ...host({ "/home/ann/.npm": "missing" }), layers: "/layers/wld_1" };
    const refused = mountPlan(spec({ files }), { ...missing, unveilable: new Set(["/home"]) });
    expect(lines(refused).filter((line) => line.includes(".npm"))).toEqual([]);
    expect(refused.kept).toEqual([]);
    expect(mountPlan(spec({ files }), missing).kept.map(({ target }) => target)).toEqual(["/home/ann/.npm"]);
  });

  test("a scratch folder is a veil with an upper layer, or an empty folder where the host has none; write goes before it", () => {
    const files = {
      ...spec().files,
      denyRead: ["/home/ann/.config/gh"],
      write: [`${PROJECT}/**`, "/home/ann/.cache/pip/**"],
      denyWrite: ["/home/ann/.config/gh", "/home/ann/.config/git"],
      scratch: [
        "/home/ann/.config/**",
        "/home/ann/.npm/**",
        "/home/ann/.cache/pip/x/**",
        "/tmp/**",
        `${PROJECT}/a/**`,
      ],
    };
    const facts = { ...host({ "/home/ann/.npm": "missing" }), layers: "/layers/wld_1" };
    const plan = mountPlan(spec({ files }), facts);
    expect(lines(plan).slice(1, 9)).toEqual([
      "hide /home/ann/.config/gh",
      "folder /home/ann/.config",
      "folder /home/ann/.npm",
      "veil /home /home",
      "veil /var /var",
      "veil /home/ann/.config /home/ann/.config /layers/wld_1/scratch-0/upper /layers/wld_1/scratch-0/work",
      "readonly /home/ann/.config/git",
      "bind /layers/wld_1/scratch-1/upper /home/ann/.npm kept",
    ]);
    expect(plan.kept.map(({ target }) => target)).toEqual(["/home/ann/.config", "/home/ann/.npm"]);
    const access = { kind: "overlay", layers: "/l" } as const;
    expect(mountPlan(spec({ files, access }), facts).kept.map(({ target }) => target)).toEqual([
      "/home/ann/.config",
      "/home/ann/.npm",
      "/home/ann/.cache/pip",
    ]);
  });

  test("an installation below a private folder is not there, so nothing is done about it", () => {
    const files = { ...spec().files, write: [`${PROJECT}/**`, "/tmp/**"] };
    const plan = lines(mountPlan(spec({ files, sealed: ["/tmp/checkout/node_modules"] }), host()));
    expect(plan.join("\n")).not.toContain("/tmp/checkout");
  });

  test("an installation below a private folder that is itself the project is read-only", () => {
    const project = "/tmp/checkout";
    const files = { ...spec().files, write: [`${project}/**`] };
    const plan = lines(mountPlan(spec({ project, files, sealed: [`${project}/node_modules`] }), host()));
    expect(plan).toContain(`readonly ${project}/node_modules`);
  });

  test("a writable path with a link on its way is not bound", () => {
    const files = { ...spec().files, write: [`${PROJECT}/**`, "/home/ann/.cache/**"] };
    const plan = lines(mountPlan(spec({ files }), host({}, { "/home/ann/.cache": "/etc" })));
    expect(plan.join("\n")).not.toContain("/home/ann/.cache");
    expect(plan.join("\n")).not.toContain("/etc");
  });

  test("a bare folder among the writable paths opens nothing, and a bare file opens that file", () => {
    const files = { ...spec().files, write: ["/data/folder", "/data/file"] };
    const plan = lines(mountPlan(spec({ files }), host({ "/data/file": "file" })));
    expect(plan).toContain("bind /data/file /data/file rw");
    expect(plan.join("\n")).not.toContain("/data/folder");
  });

  test("a denied read that is a link masks the place the link leads to", () => {
    const files = { ...spec().files, denyRead: ["/home/ann/.ssh"] };
    expect(lines(mountPlan(spec({ files }), host({}, { "/home/ann/.ssh": "/data/ssh" })))).toContain(
      "mask /data/ssh",
    );
  });

  test("an overlay project has its layers outside and marks in user xattrs where the kernel asks for it", () => {
    const access = { kind: "overlay", layers: "/var/lib/substrate/overlay/spn_1" } as const;
    const words = `overlay ${PROJECT} ${access.layers}/upper ${access.layers}/work ${PROJECT}`;
    expect(lines(mountPlan(spec({ access }), host()))).toContain(words);
    expect(lines(mountPlan(spec({ access }), { ...host(), userNamespace: true }))).toContain(
      `${words} userxattr`,
    );
  });

  test("a policy that reads a part of the host shows only that part", () => {
    const files = { ...spec().files, read: ["/usr/**", "/bin/**"] };
    const plan = lines(mountPlan(spec({ files }), host({}, { "/bin": "/usr/bin" })));
    expect(plan[0]).toBe("tmpfs / mode=755,size=16m,nr_inodes=64k");
    expect(plan).toContain("bind /usr /usr ro");
    expect(plan).toContain("symlink /usr/bin /bin");
    expect(plan).not.toContain("root");
    // Last of all: a write into the root of our own would be lost with the world.
    expect(plan.at(-1)).toBe("closed");
    expect(lines(mountPlan(spec(), host()))).not.toContain("closed");
  });

  test("what may be written is there, whatever fs.read says: a place is made for it to be bound at", () => {
    const write = [`${PROJECT}/**`, "/srv/out/**", "/srv/out/deep/**", "/usr/local/out/**", "/srv/file"];
    const files = { ...spec().files, read: ["/usr/**"], write };
    const plan = lines(mountPlan(spec({ files }), host({ "/srv/file": "file" })));
    const made = plan.indexOf("dir /srv/out 755");
    expect(made).toBeGreaterThan(0);
    expect(plan.indexOf("bind /srv/out /srv/out rw")).toBe(made + 1);
    expect(plan[plan.indexOf("bind /srv/file /srv/file rw") - 1]).toBe("file /srv/file");
    // What lies in another tree is there already: nothing is made in the host's own folders.
    expect(plan).toContain("bind /usr/local/out /usr/local/out rw");
    expect(plan.filter((line) => /^dir (\/usr\/local|\/srv\/out\/deep)/.test(line))).toEqual([]);
    const all = lines(mountPlan(spec({ files: { ...files, read: ["/**"] } }), host({ "/srv/file": "file" })));
    expect(all.filter((line) => /^(dir|file) \/srv/.test(line))).toEqual([]);
  });

  test("seals that are judged are init's to ask about, but over an overlay", () => {
    const settings = `${PROJECT}/**/*.git/config`;
    const files = { ...spec().files, seal: [settings, `${PROJECT}/**/*.git/hooks`], judged: [settings] };
    const told = (access: "direct" | "overlay"): readonly string[] =>
      mountPlan(
        spec({ files, access: access === "direct" ? { kind: access } : { kind: access, layers: "/l" } }),
        host(),
      ).denied.map((name) => denialWords(name).join(" "));
    expect(told("direct")).toContain("c Lhome Lann Lwork T G*.git Lconfig");
    expect(told("direct")).toContain("s Lhome Lann Lwork T G*.git Lhooks");
    expect(told("overlay").filter((words) => words.startsWith("c"))).toEqual([]);
  });

  test("a project outside what may be read and written is not there, and a bare folder gives nothing to read", () => {
    const files = { ...spec().files, read: ["/usr/**", "/srv"], write: [] };
    const plan = lines(mountPlan(spec({ files }), host())).join("\n");
    expect(plan).not.toContain(PROJECT);
    expect(plan).not.toContain("/srv");
  });

  test("the machine-wide switches of procfs are sealed after procfs is mounted", () => {
    const plan = lines(mountPlan(spec(), host()));
    const proc = plan.indexOf("proc /proc");
    for (const name of ["sys", "sysrq-trigger", "irq", "bus"])
      expect(plan.indexOf(`readonly /proc/${name}`)).toBeGreaterThan(proc);
  });
});
