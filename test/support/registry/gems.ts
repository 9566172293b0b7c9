/** A registry of one gem, made by the Ruby that is installed: its specifications are Ruby's own format. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Pages, SAYS } from "./pages.ts";

const SPEC = `Gem::Specification.new do |s|
  s.name = 'thing'; s.version = '1.0.0'; s.summary = 'A thing'; s.authors = ['A Person']; s.files = ['lib/thing.rb']
  s.homepage = 'https://example.test'; s.license = 'MIT'; s.date = '2020-01-01'
end
`;

/** guides.rubygems.org/rubygems-org-compact-index-api, and the older index that it stands beside. */
const MARSHAL = `require 'rubygems'; require 'zlib'
spec = Gem::Specification.load('thing.gemspec'); spec.loaded_from = nil
File.binwrite('quick', Zlib::Deflate.deflate(Marshal.dump(spec)))
index = Marshal.dump([['thing', Gem::Version.new('1.0.0'), 'ruby']])
Zlib::GzipWriter.open('specs') { |gz| gz.write(index) }
Zlib::GzipWriter.open('none') { |gz| gz.write(Marshal.dump([])) }
`;

/** Empty where Ruby is missing: no gem can be built, and no client asks for one. */
export function gemPages(): Pages {
  const folder = mkdtempSync(join(tmpdir(), "sb-gems-"));
  try {
    mkdirSync(join(folder, "lib"));
    writeFileSync(join(folder, "lib/thing.rb"), `THING_SAYS = ${JSON.stringify(SAYS)}\n`);
    writeFileSync(join(folder, "thing.gemspec"), SPEC);
    const made = [
      spawnSync("gem", ["build", "--silent", "thing.gemspec"], { cwd: folder }),
      spawnSync("ruby", ["-e", MARSHAL], { cwd: folder }),
    ];
    if (made.some(({ status }) => status !== 0)) return {};
    return pagesFrom((name) => readFileSync(join(folder, name)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function pagesFrom(read: (name: string) => Buffer): Pages {
  const gem = read("thing-1.0.0.gem");
  const info = `---\n1.0.0 |checksum:${createHash("sha256").update(gem).digest("hex")}\n`;
  return {
    "/gems/gems/thing-1.0.0.gem": gem,
    "/gems/quick/Marshal.4.8/thing-1.0.0.gemspec.rz": read("quick"),
    "/gems/specs.4.8.gz": read("specs"),
    "/gems/latest_specs.4.8.gz": read("specs"),
    "/gems/prerelease_specs.4.8.gz": read("none"),
    "/gems/info/thing": info,
    "/gems/names": "---\nthing\n",
    "/gems/versions": `created_at: 2020-01-01T00:00:00Z\n---\nthing 1.0.0 ${createHash("md5").update(info).digest("hex")}\n`,
  };
}
