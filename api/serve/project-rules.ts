import type { Listed } from "../../broker/policies/listed.ts";
import type { Marks } from "../../broker/project/marks.ts";
import type { KnownFolders, ProjectRules } from "../../broker/project/projects.ts";
import type { ProgramFolders } from "../../broker/project/program-folders.ts";
import { realPlace } from "../../broker/model/real-place.ts";
import { SecondNames } from "../../broker/project/second-names.ts";
import { UnmarkedFolders } from "../../broker/project/unmarked.ts";
import type { Surroundings } from "../../broker/worlds/world-spec.ts";
import type { Parts } from "./assemble.ts";

/** Rules deciding which folders can be projects; each call reads the current settings. */
export function projectRulesOf(
  { uid, host, installation: { root: installation } }: Pick<Parts, "uid" | "host" | "installation">,
  { home, hidden }: Surroundings,
  listed: () => Listed,
  marks: Marks,
  programs: ProgramFolders,
): () => ProjectRules {
  const runtime = host["XDG_RUNTIME_DIR"];
  const lasting = {
    marks,
    programs,
    secondNames: new SecondNames({ home, hidden, installation }),
    unmarked: new UnmarkedFolders(),
    scratch: runtime?.startsWith("/") === true ? [realPlace(runtime)] : [],
  };
  return () => {
    const { roots, folders } = listed();
    // List the installation for the tour: an unpacked archive may lie anywhere, without a repository.
    const known: KnownFolders = { ...lasting, listed: [...folders, installation] };
    return { home, hidden, uid, installation, roots, known };
  };
}
