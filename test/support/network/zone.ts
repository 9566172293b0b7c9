import type { Zone } from "./messages.ts";

/** The resolver of the tests' internet, as a policy's `net.dns.servers` names it. */
export const RESOLVER = "203.0.113.53:53";

/** A resolver that no policy names. */
export const FOREIGN_RESOLVER = "198.51.100.53";

/** The one address at which nobody is: dialling it fails at once (EHOSTUNREACH). */
export const DEAD_ADDRESS = "203.0.113.99";

/** A public address of the host itself: what listens there is the host's, like what listens on its localhost. */
export const OWN_ADDRESS = "20.30.40.50";

/** Names of the tests' internet. RFC 6761 keeps `.test` for this, RFC 5737 and RFC 3849 the addresses. */
export const ZONE: Zone = {
  "registry.example.test": { addresses: ["203.0.113.10"] },
  // Another name behind the registry's address: names are the rule, addresses are not.
  "stranger.example.test": { addresses: ["203.0.113.10"] },
  "both.example.test": { addresses: ["203.0.113.11", "2001:db8::11"] },
  "six.example.test": { addresses: ["2001:db8::12"] },
  "files.example.test": { addresses: ["203.0.113.20", "203.0.113.21"] },
  "alias.example.test": { alias: "files.example.test" },
  "git.example.test": { addresses: ["203.0.113.30"] },
  "collector.evil.test": { addresses: ["203.0.113.66"] },
  "*.collector.evil.test": { addresses: ["203.0.113.66"] },
  "evilregistry.example.test": { addresses: ["203.0.113.66"] },
  "evil-registry.example.test": { addresses: ["203.0.113.66"] },
  "registry.example.test.evil.test": { addresses: ["203.0.113.66"] },
  "*.wild.example.test": { addresses: ["203.0.113.40"] },
  "wild.example.test": { addresses: ["203.0.113.41"] },
  "evilwild.example.test": { addresses: ["203.0.113.66"] },
  // bücher.example.test
  "xn--bcher-kva.example.test": { addresses: ["203.0.113.42"] },
  "doh.example.test": { addresses: ["203.0.113.54"] },
  "dead.example.test": { addresses: [DEAD_ADDRESS] },
  "half-dead.example.test": { addresses: [DEAD_ADDRESS, "203.0.113.20"] },
  "many.example.test": { addresses: ["203.0.113.20"], cut: true },
  "broken.example.test": { rcode: "SERVFAIL" },
  "silent.example.test": { silent: true },
  "rotating.example.test": {
    turns: [["203.0.113.71"], ["203.0.113.72"], ["203.0.113.73"]],
    then: "again",
    ttl: 0,
  },
};
