import type { Listed } from "../../broker/policies/listed.ts";
import type { Marks } from "../../broker/project/marks.ts";
import type { KnownFolders, ProjectRules } from "../../broker/project/projects.ts";
import type { ProgramFolders } from "../../broker/project/program-folders.ts";
import { realPlace } from "../../broker/model/real-place.ts";
import { SecondNames } from "../../broker/project/second-names.ts";
import { UnmarkedFolders } from "../../broker/project/unmarked.ts";
import type { Surroundings } from "../../broker/worlds/world-spec.ts";
import type { Parts } from "./assemble.ts";

/** What folders can be projects, by the settings as they are whenever it is asked. */
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
    // The tour runs in the installation, which may be unpacked anywhere and without its repository.
    const known: KnownFolders = { ...lasting, listed: [...folders, installation] };
    return { home, hidden, uid, installation, roots, known };
  };
}
