import type { HostCheck, HostFinding } from "../../broker/broker.ts";
import { claimedBy } from "../serve/claim.ts";
import { type Host, installedService } from "../startup/services.ts";

/** Checks the service that starts the broker, if one is installed. */
export function startCheck(host: Host): HostCheck {
  const what = "the broker's service, for a start at each login";
  return { name: "service", what, needed: false, run: () => Promise.resolve(findingOf(host)) };
}

function findingOf(host: Host): HostFinding {
  const found = installedService(host);
  if (found === undefined)
    return { verdict: "ok", seen: "none: the first command starts the broker", mend: [] };
  const { service, front } = found;
  const { active, enabled, pid } = service.state();
  const by = claimedBy(host.home.startLock);
  const faults = [
    ...(front === host.installation.front ? [] : [`it starts another installation, '${front}'`]),
    ...(enabled ? [] : ["it is not enabled"]),
    ...(active === "failed" ? ["it has failed"] : []),
    ...(by !== undefined && by !== pid ? [`a broker that was started by hand runs (pid ${by})`] : []),
  ];
  const seen = [`${service.manager}: ${active}`, ...faults].join("; ");
  if (faults.length === 0) return { verdict: "ok", seen, mend: [] };
  return { verdict: "weaker", seen, mend: ["substrate service install"] };
}
