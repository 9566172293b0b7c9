import type { Workload } from "../workload.ts";

const TREE = `mkdir -p tree/a/b tree/empty; echo one > tree/one; printf '#!/bin/sh\\n' > tree/a/run; chmod 755 tree/a/run; ln -s ../one tree/a/link
ln tree/one tree/a/b/hard; chmod 600 tree/a/b/hard; touch -d '2001-02-03 04:05:06.789' tree/a/run; touch -d '1999-12-31' tree/empty; touch -d '1998-01-01' tree tree/a tree/a/b; touch -h -d '1997-01-01' tree/a/link`;

/** Root changes owners outside, and commands of a root do not ("a file that nobody may read"). */
const NOT_ROOT = '[ "$(id -u)" != 0 ]';

/** What commands do to files, and what of it is left. */
export const FILES: readonly Workload[] = [
  {
    name: "files and folders made, moved, copied and removed",
    command:
      "mkdir -p a/b; echo x > a/f; cp a/f a/b/g; mv a/f a/h; cp -r a c; rm -r a/b; rmdir e; rm f; ls -R",
    files: { f: "gone" },
    prepare: "mkdir e",
  },
  {
    name: "a file of the project is changed in place",
    command:
      "echo more >> f; printf X | dd of=f bs=1 seek=2 conv=notrunc status=none; truncate -s 10 g; : > h; cat f; wc -c f g h",
    files: { f: "text\n", g: "12345678901234\n", h: "full\n" },
  },
  {
    name: "a file is replaced by rename, as editors save",
    quick: true,
    command: "echo new > .f.tmp; chmod --reference=f .f.tmp; mv .f.tmp f; cat f; ls -A",
    files: { f: "old\n" },
    prepare: "chmod 640 f",
  },
  {
    name: "modes of all kinds",
    quick: "at length",
    command:
      "for m in 000 111 222 444 600 750 1777 2775 4755 6711; do : > f$m; chmod $m f$m; done; mkdir d; chmod 2770 d; : > d/f; chmod g+w,o-r old; ls -l | cut -c1-10; stat -c '%a %n' *",
    files: { old: "x" },
  },
  {
    name: "a file that nobody may read",
    command: "chmod 500 d; touch d/x; echo $?; chmod 700 d; chmod 000 f; cat f",
    files: { f: "x", "d/y": "y" },
    refused: { default: /no capabilities/, strict: /no capabilities/ },
    refusedTo: "root",
  },
  {
    name: "links to files, folders, nothing and themselves",
    quick: "at length",
    command:
      "ln -s f l; ln -s d ld; ln -s none dead; ln -s loop loop; ln -s \"$PWD/f\" abs; ln -sfn d l2; ln -sfn f l2; cat l abs l2; cat dead loop; readlink -f l ld/../l; ls -l | awk '{print $1, $9, $10, $11}'; cp -P dead d/; realpath ld/y",
    files: { f: "x\n", "d/y": "y" },
  },
  {
    name: "hard links",
    quick: "at length",
    command:
      "ln f g; ln f d/h; echo more >> g; cat d/h; stat -c '%h' f; rm f; stat -c '%h' g; ln d e; echo $?; ln -L l m; [ g -ef m ] && echo same",
    files: { f: "x\n", "d/y": "y" },
    prepare: "ln -s f l; ln f m0; ln -sf g l",
  },
  {
    name: "times that are set, and kept by cp -p and mv",
    quick: "at length",
    command:
      "touch -d '2001-01-01 01:02:03.456789' a; cp -p a b; mv b c; touch -r a d; cp a e; touch -d 2040-01-01 far; touch -a -d 1980-01-01 g; stat -c '%n %y' a c d far; stat -c %x g; touch -h -d 1990-01-01 l; stat -c %y l",
    files: { g: "x" },
    prepare: "ln -s g l",
  },
  {
    name: "make looks at times",
    quick: true,
    needs: ["make"],
    files: { Makefile: "out: in\n\tcp in out\nother: out\n\tcp out other\n", in: "1\n" },
    command:
      "make other; make other; touch -d '+1 minute' in; make other; touch -d '2000-01-01' in; make -q other; echo $?",
  },
  {
    name: "cp -a of a tree",
    quick: true,
    prepare: TREE,
    command: "cp -a tree copy; diff -r tree copy; find copy -printf '%p %y %m %s %n %TY-%Tm-%Td\\n' | sort",
  },
  {
    name: "rsync -aH of a tree, and what it does the second time",
    needs: ["rsync"],
    prepare: TREE,
    command:
      "rsync -aH tree/ copy/; echo two > tree/two; rm tree/a/run; rsync -aHi --delete tree/ copy/; find copy -printf '%p %y %m %n\\n' | sort",
  },
  {
    name: "a sparse file, read and copied",
    command:
      "truncate -s 300M sparse; printf end | dd of=sparse bs=1 seek=314572797 conv=notrunc status=none; stat -c %s sparse; cp --sparse=always sparse copy; tail -c 3 copy; du -k copy | awk '{print ($1 < 1000)}'; head -c 20000000 sparse | cksum",
    strictest: "strict",
  },
  {
    name: "holes are made and found",
    needs: ["fallocate"],
    command:
      "head -c 8M /dev/zero | tr '\\0' x > f; fallocate -p -o 1M -l 4M f; stat -c %s f; cksum f; fallocate -l 1M g; stat -c %s g; fallocate -d f; fallocate -z -o 0 -l 4096 f; cksum f",
  },
  {
    name: "a file of 200 MB",
    command:
      "seq 1 24000000 > big; wc -c big; tail -1 big; cksum big; cp big copy; cmp big copy && echo same; rm copy; head -c 1000 big > big2; mv big2 big",
  },
  {
    name: "a sparse file of 5 GB",
    command:
      "truncate -s 5G big; echo end >> big; tail -c4 big; stat -c '%s %b' big; cp --sparse=always big copy; tail -c4 copy; du -k copy | cut -f1; rm big copy",
  },
  {
    name: "a path that is longer than the kernel takes",
    needs: ["python3"],
    command:
      "python3 -c \"import os\nfor i in range(100): os.mkdir('d' * 50); os.chdir('d' * 50)\nopen('f', 'w').write('x'); print(len(os.getcwd()), os.path.exists('f'))\"; rm -r d*; ls",
  },
  {
    name: "5,000 files in one folder",
    command:
      "mkdir d; cd d; seq -f 'f%g' 5000 | xargs touch; ls | wc -l; ls | sort -V | tail -1; find . -name 'f1*' -delete; ls | wc -l",
  },
  {
    name: "a folder 80 levels deep",
    command:
      "d=.; for i in $(seq 80); do d=$d/level-$i; done; mkdir -p $d; echo deep > $d/file; find . -type f | awk -F/ '{print NF}'; cat $d/file; (cd $d && pwd | wc -c && ls); rm -r level-1/level-2/level-3/level-4; find . | wc -l",
  },
  {
    name: "names with spaces, line breaks, quotes and UTF-8",
    command:
      "touch 'a b' \"q'q\" 'd\"d' 'tab\tx' \"$(printf 'line\\nbreak')\" 'ümläut-日本' '*' '$HOME' '-n' ' lead' 'back\\slash' '~'; for f in *; do printf '[%s]\\n' \"$f\"; done; rm -- -n '*'; ls | wc -l; find . -name '* *' -print0 | xargs -0 ls -b",
  },
  {
    name: "names that are no UTF-8",
    quick: true,
    command:
      'f=$(printf \'latin\\351\'); echo x > "$f"; mkdir "$(printf \'d\\377\')"; echo y > "$(printf \'d\\377/f\\200\')"; ls -b; mv "$f" "$(printf \'mo\\370ved\')"; ls -bR; cat d*/*',
  },
  {
    name: "names of 255 bytes",
    command: "n=$(printf '%0255d' 0); echo x > $n; cat $n; touch ${n}1; echo $?; ls | wc -c",
  },
  {
    name: "extended attributes",
    quick: true,
    needs: ["setfattr", "getfattr"],
    prepare: "touch f; setfattr -n user.old -v was f",
    command:
      "setfattr -n user.comment -v 'a text' f; setfattr -n user.bin -v 0x00ff f; getfattr -d f; setfattr -x user.old f; cp --preserve=xattr f g; getfattr -d -m - g; mv g h; mkdir d; setfattr -n user.d -v 1 d",
  },
  {
    name: "access control lists",
    needs: ["setfacl", "getfacl"],
    command:
      "setfacl -m u::rw,g::r,m::r f; getfacl -c f; setfacl -d -m g::rwx d; touch d/f; getfacl -c d/f; setfacl -b f; ls -l f | cut -c1-11",
    files: { f: "x", "d/x": "x" },
  },
  {
    name: "an access control list that names another user",
    needs: ["setfacl", "getfacl"],
    tried: 'cd "$HOME" && f=$(mktemp acl.XXXX) && setfacl -m u:nobody:r $f; r=$?; rm -f $f; exit $r',
    command: "setfacl -m u:nobody:rw f && getfacl -c f && ls -l f | cut -c1-11",
    files: { f: "x" },
    refused: { default: /one user/, strict: /one user/ },
    refusedTo: "an ordinary user",
  },
  {
    name: "flock between two processes",
    needs: ["flock"],
    command:
      "(flock 9; echo first >> log; sleep 1; echo first done >> log) 9> lock & until [ -s log ]; do sleep 0.05; done; flock -n lock echo never; echo $?; flock lock sh -c 'echo second >> log'; wait; cat log; flock -s lock flock -s lock echo shared",
  },
  {
    name: "a fifo between two processes",
    quick: "at length",
    command:
      "mkfifo pipe; (echo through; echo more) > pipe & cat pipe; wait; [ -p pipe ] && echo fifo; stat -c '%F %a' pipe",
  },
  {
    name: "install, and what it sets",
    needs: ["install"],
    command:
      "install -d -m 750 bin; install -m 755 prog bin/; install -D -m 644 prog share/doc/x; ls -lR bin share | cut -c1-10; install -C prog bin/prog; install -s prog bin/ 2>&1 | wc -l",
    files: { prog: "#!/bin/sh\n" },
  },
  {
    name: "chown and chgrp to oneself",
    command: "chown $(id -u):$(id -g) f; chgrp $(id -gn) f; stat -c %U:%G f; chown -h $(id -u) l",
    files: { f: "x" },
    prepare: "ln -s f l",
  },
  {
    name: "chown and chgrp to others, and programs that try them",
    quick: true,
    needs: ["python3"],
    tried: NOT_ROOT,
    command:
      "chown 4242 f; chgrp 4242 f; chown -h 4242 l; python3 -c \"import os\nfor call in (lambda: os.setuid(4242), lambda: os.setregid(4242, -1), lambda: os.setresuid(-1, -1, 4242), lambda: os.setgid(4242), lambda: os.chown('f', -1, 4242)):\n  try: call()\n  except OSError as error: print(error.strerror)\"; install -o 4242 f g; echo $?; cp -a f h && stat -c %U:%G h",
    files: { f: "x" },
    prepare: "ln -s f l",
  },
  {
    name: "fakeroot, which gives files to others in its own books",
    needs: ["fakeroot", "tar"],
    tried: NOT_ROOT,
    command:
      "fakeroot sh -c 'chown 0:0 f; chown -R 4242:4242 d; stat -c %u:%g f d/y; tar cf x.tar f d'; tar tvf x.tar --numeric-owner | awk '{print $1, $2, $6}'",
    files: { f: "x", "d/y": "y" },
  },
  {
    name: "df, du and stat of the project",
    command:
      "du -s --apparent-size -b d; stat -c '%n %s %F %h' d/*; stat -f -c %T . ; df --output=fstype . | tail -1; findmnt -n -o FSTYPE -T . ; du -a d | awk '{print $2}' | sort",
    files: { "d/a": "aaaa", "d/b": "b" },
  },
  {
    name: "a write to a full device",
    command:
      "echo x > /dev/full; echo $?; cat /dev/null; head -c 5 /dev/zero | od -An -tx1; head -c 16 /dev/urandom | wc -c; [ -c /dev/tty ]; echo $?; ls /dev | grep -c '^null$'",
  },
  {
    name: "files beside the project are read",
    quick: true,
    prepare: "mkdir ../beside; echo there > ../beside/f; ln -s ../beside/f link",
    command: "cat ../beside/f link; ls ..; find ../beside; (cd ../beside && pwd | grep -c beside)",
  },
  {
    name: "a file is written beside the project",
    command: 'echo x > ../written; echo "exit $?"; mkdir ../made && echo y > ../made/y',
    refused: { default: /written|made/, strict: /written|made/ },
  },
  {
    name: "a file is written in the home folder",
    command: "echo x > ~/fidelity-file && cat ~/fidelity-file",
    home: ["fidelity-file"],
    refused: { default: /fidelity-file/, strict: /fidelity-file/ },
  },
  {
    name: "a folder for the whole of a command's work in /tmp",
    command:
      "d=$(mktemp -d); echo x > $d/a; mkfifo $d/p; ln -s a $d/l; cp -a $d here; ls here; rm -r $d; ls -ld /tmp /var/tmp /dev/shm | cut -c1-10; TMPDIR=$PWD mktemp -u | grep -c project",
  },
  {
    name: "open files that are removed, and read on",
    command: "exec 3< f; rm f; cat <&3; echo new > f; exec 4>> f; mv f g; echo more >&4; cat g",
    files: { f: "old\n" },
  },
  {
    name: "a tree is removed while it is walked",
    prepare: "for i in 1 2 3 4 5; do mkdir -p t/$i/a/b; echo $i > t/$i/a/b/f; done",
    command:
      "find t -depth -delete; echo $?; ls; mkdir t; touch t/.hidden; rm -rf t/* t/.hidden; rmdir t && echo empty",
  },
  {
    name: "shred, split, csplit and join",
    command:
      "seq 10 > n; split -l 4 n part-; cat part-*; csplit -s n 3 7; wc -l xx*; join n n | head -2; paste -d, n n | tail -1; tac n | head -1; comm -12 n part-aa; shred -u -n 1 n; ls",
  },
];
