import type { Workload } from "../workload.ts";

const TREE = `mkdir -p t/a/b t/empty; seq 1000 > t/numbers; printf '#!/bin/sh\\n' > t/a/run; chmod 755 t/a/run; ln -s ../numbers t/a/link; ln t/numbers t/a/b/hard
chmod 400 t/a/b/hard; : > 't/sp ace'; find t -exec touch -h -d '2003-04-05 06:07:08' {} +`;

const LIST = "find out -mindepth 1 -printf '%p %y %m %s %n\\n' | sort";

export const ARCHIVES: readonly Workload[] = [
  {
    name: "tar packs and unpacks, with modes, links and times",
    quick: "at length",
    prepare: TREE,
    command: `tar cf t.tar t; tar tvf t.tar; mkdir out; tar xpf t.tar -C out; ${LIST}; tar df t.tar; echo $?`,
  },
  {
    name: "tar with gzip, bzip2, xz and zstd",
    needs: ["gzip", "bzip2", "xz", "zstd"],
    prepare: TREE,
    command: `for c in z j J; do tar c$c"f" t.$c t; mkdir out; tar xf t.$c -C out; ${LIST} | cksum; rm -rf out; done; tar --zstd -cf t.zst t; tar tf t.zst | wc -l`,
  },
  {
    name: "tar appends, excludes, strips and streams",
    prepare: TREE,
    command:
      "tar cf a.tar --exclude='*.o' t/a; tar rf a.tar t/numbers; tar tf a.tar; mkdir o; tar xf a.tar -C o --strip-components=1; ls -R o; tar c t | (mkdir p && tar x -C p); ls p; tar cf - none | wc -c; tar --sort=name --mtime=@0 --owner=0 --group=0 -cf r.tar t; cksum r.tar",
  },
  {
    name: "gzip, gunzip, zcat and zgrep",
    quick: "at length",
    needs: ["gzip"],
    prepare: TREE,
    command:
      "gzip -k t/numbers; gzip -l t/numbers.gz; zcat t/numbers.gz | cksum; zgrep -c 77 t/numbers.gz; gunzip -c t/numbers.gz | cmp - t/numbers; rm -f t/numbers; gunzip t/numbers.gz; ls -l t | wc -l; echo x | gzip -d; echo $?",
  },
  {
    name: "xz, bzip2 and zstd of one file",
    needs: ["xz", "bzip2", "zstd"],
    prepare: "seq 200000 > n",
    command:
      "xz -k -T 2 n; bzip2 -k n; zstd -q n; for f in n.xz n.bz2 n.zst; do test -s $f && echo $f; done; xz -dc n.xz | cmp - n; bunzip2 -c n.bz2 | cmp - n; zstd -qdc n.zst | cmp - n; xz -t n.xz; echo $?",
  },
  {
    name: "zip and unzip",
    needs: ["zip", "unzip"],
    prepare: TREE,
    command: `zip -qry t.zip t; unzip -l t.zip | awk '{print $1, $4}'; unzip -q t.zip -d out; ${LIST}; unzip -t t.zip | tail -1; zip -q -d t.zip 't/a/*'; unzip -Z1 t.zip; zip -P pw -q e.zip t/numbers; unzip -P no e.zip; echo $?`,
    varies: { content: [/\.zip$/] },
  },
  {
    name: "cpio",
    needs: ["cpio"],
    prepare: TREE,
    command: `find t -depth -print0 | cpio -0o -H newc > t.cpio; mkdir out; cd out; cpio -idm --quiet < ../t.cpio; cd ..; ${LIST}; cpio -it < t.cpio`,
    varies: { content: [/t\.cpio$/] },
  },
  {
    name: "ar, and a Debian package",
    needs: ["ar", "dpkg-deb", "fakeroot"],
    command:
      "mkdir -p p/DEBIAN p/usr/bin; printf 'Package: x\\nVersion: 1\\nArchitecture: all\\nMaintainer: a\\nDescription: x\\n' > p/DEBIAN/control; echo x > p/usr/bin/x; fakeroot dpkg-deb -b p x.deb; dpkg-deb -c x.deb | awk '{print $1, $2, $6}'; ar t x.deb; dpkg-deb -x x.deb o; find o",
    varies: { content: [/x\.deb$/] },
  },
  {
    name: "python's tarfile and zipfile",
    needs: ["python3"],
    prepare: TREE,
    command: `python3 - <<'E'\nimport tarfile, zipfile, os, shutil\nwith tarfile.open('t.tgz', 'w:gz') as a: a.add('t')\nwith tarfile.open('t.tgz') as a: a.extractall('out')\nshutil.make_archive('z', 'zip', 't/a')\nprint(sorted(zipfile.ZipFile('z.zip').namelist()))\nE\n${LIST}`,
    varies: { content: [/\.(tgz|zip)$/] },
  },
];
