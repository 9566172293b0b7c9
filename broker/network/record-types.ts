/** From the IANA registry of DNS resource record types: those that programs ask for. */
const NAMES: Readonly<Record<number, string>> = {
  1: "A",
  2: "NS",
  5: "CNAME",
  6: "SOA",
  10: "NULL",
  12: "PTR",
  15: "MX",
  16: "TXT",
  28: "AAAA",
  33: "SRV",
  35: "NAPTR",
  37: "CERT",
  43: "DS",
  44: "SSHFP",
  48: "DNSKEY",
  52: "TLSA",
  64: "SVCB",
  65: "HTTPS",
  249: "TKEY",
  250: "TSIG",
  251: "IXFR",
  252: "AXFR",
  255: "ANY",
  257: "CAA",
};

/** A record type in words; one without a name here as RFC 3597 section 5 writes it. */
export function recordType(type: number): string {
  return NAMES[type] ?? `TYPE${type}`;
}
