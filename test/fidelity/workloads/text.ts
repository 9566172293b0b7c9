import type { Workload } from "../workload.ts";

const WORDS = "pear 3\napple 10\nfig 2\napple 1\n";

/** Tools that turn text into text, editors in batch mode, long outputs. */
export const TEXT: readonly Workload[] = [
  {
    name: "sed -i, with and without a copy",
    quick: true,
    command:
      "sed -i 's/apple/plum/g' f; sed -i.bak -e '/fig/d' -e '1i\\top' f; cat f; sed -n '$=' f.bak; sed -E 's/([a-z]+) ([0-9]+)/\\2 \\1/w out' f",
    files: { f: WORDS },
  },
  {
    name: "perl -i, -pe and a script",
    needs: ["perl"],
    command:
      'perl -i -pe \'s/(\\d+)/$1*2/e\' f; cat f; perl -ne \'print if /a/; END { print "$.\\n" }\' f; perl -e \'print join(",", sort keys %{{map {$_=>1} qw(b a)}}), "\\n"; warn "warned\\n"; exit 3\'',
    files: { f: WORDS },
  },
  {
    name: "perl forks, pipes and catches signals",
    needs: ["perl"],
    command:
      'perl -e \'$SIG{USR1}=sub{print "usr1\\n"}; my $p=fork//die; if(!$p){kill USR1=>getppid; exit 5} waitpid($p,0); print $?>>8,"\\n"; open(my $h,"-|","echo piped"); print <$h>; print `echo ticks`; alarm 1; $SIG{ALRM}=sub{die "alarm\\n"}; eval{sleep 5}; print $@\'',
  },
  {
    name: "awk, with files, pipes and system",
    needs: ["awk"],
    command:
      'awk \'{ s[$1] += $2 } END { for (k in s) print k, s[k] | "sort" }\' f; awk \'BEGIN { "echo sub" | getline x; print x; system("echo sys"); printf "%05.2f\\n", 3.14159 > "out" }\'; cat out',
    files: { f: WORDS },
  },
  {
    name: "gawk",
    needs: ["gawk"],
    command:
      'gawk \'BEGIN { PROCINFO["sorted_in"] = "@ind_str_asc"; print gensub(/a(b)/, "<\\\\1>", 1, "xaby"), strftime("%Y", 0, 1); print length("äö") } { a[$1]++ } END { for (k in a) print k, a[k] }\' f',
    files: { f: WORDS },
  },
  {
    name: "sort, uniq, cut, tr, comm, join and head",
    quick: "at length",
    command:
      "sort -k2n f; sort -u -k1,1 f; cut -d' ' -f2 f | sort -n | paste -sd+ ; tr a-y b-z < f; sort f | uniq -c; head -c 7 f; tail -n +3 f; rev f; fold -w 3 f; nl f; expand f; column -t f",
    needs: ["column"],
    files: { f: WORDS },
  },
  {
    name: "sort of a million lines",
    command:
      "seq 1000000 | awk '{ print ($1 * 7919) % 1000003 }' > n; sort -n n > s; head -2 s; cksum s; sort n | cksum; sort -S 2M -T . n | cksum; ls",
  },
  {
    name: "diff and patch",
    needs: ["patch"],
    command:
      "diff -u a b > p; cat p | sed 's/\\t.*//'; cp a c; patch c p; cmp b c; patch -R c p; cmp a c; patch --dry-run c < p; echo zzz > d; patch d p; echo $?; ls; diff -rq . sub; diff3 a b c | head -3",
    files: { a: "1\n2\n3\n4\n", b: "1\nzwei\n3\n4\n5\n", "sub/a": "x" },
    varies: { content: [/\/p$/] },
  },
  {
    name: "ed",
    needs: ["ed"],
    command:
      "printf '1,$p\\n2s/apple/plum/\\n$a\\nlast\\n.\\ng/fig/d\\nw\\n=\\nq\\n' | ed f; cat f; ed -s f <<'E'\n1d\nw g\nQ\nE\necho $?",
    files: { f: WORDS },
  },
  {
    name: "vim -es",
    needs: ["vim"],
    command:
      "vim -es -u NONE -c '%s/apple/plum/g' -c 'normal Goadded' -c 'wq' f; echo $?; cat f; vim -es -u NONE -c 'edit new' -c 'put =range(1,3)' -c 'w' -c 'qa!'; cat new; ls -A",
    files: { f: WORDS },
  },
  {
    name: "vim leaves a swap file and a copy where it was told to",
    needs: ["vim"],
    command:
      "vim -es -u NONE -c 'set backup backupdir=. undofile undodir=.' -c '%s/apple/plum/g' -c 'w' -c 'qa!' f; echo $?; ls -A; cat f",
    files: { f: WORDS },
    varies: { content: [/\.un~$/] },
  },
  {
    name: "bc",
    needs: ["bc"],
    command:
      "echo '2^200; scale=20; 4*a(1)' | bc -l; bc -q <<'E'\ndefine f(n) { if (n < 2) return 1; return n * f(n - 1) }\nf(30)\nE",
  },
  { name: "dc", needs: ["dc"], command: "echo '2 100 ^ p 16 o 255 p' | dc" },
  {
    name: "jq",
    needs: ["jq"],
    command:
      "echo '{\"a\":[1,2,{\"b\":null}],\"u\":\"ü\"}' | jq -c '.a[2].b, (.a|length), .u'; jq -n '[range(3)]'; echo '{' | jq .; echo $?; jq -r '.x // \"none\"' <<'E'\n{}\nE",
  },
  {
    name: "m4",
    needs: ["m4"],
    command: "printf 'define(`f'\\'', `$1-$2'\\'')f(a,b) syscmd(echo sys)esyscmd(echo esys)' | m4",
  },
  {
    name: "grep in files and trees",
    command:
      "grep -rn apple . | sort; grep -c a f; grep -o '[0-9]*' f; grep -q none f; echo $?; grep -E '^(p|f)' f; grep x nofile; echo $?; grep -rlZ fig . | tr '\\0' '\\n'; printf 'a\\0b' > bin; grep b bin",
    files: { f: WORDS, "d/g": WORDS },
  },
  {
    name: "od, xxd, base64 and checksums",
    needs: ["xxd"],
    command:
      "head -c 300 /dev/zero | tr '\\0' A | od -c | head -3; xxd f | xxd -r | cmp - f; base64 f | base64 -d | cmp - f; md5sum f > s; sha256sum f >> s; md5sum -c s 2>&1; sha512sum f; b2sum f; cksum f",
    files: { f: WORDS },
  },
  {
    name: "iconv and recoding",
    needs: ["iconv"],
    command:
      "printf 'gr\\374n' | iconv -f latin1 -t utf8; echo; printf '\\303\\274' | iconv -f utf8 -t utf16le | od -An -tx1; printf '\\377' | iconv -f utf8 -t latin1; echo $?",
  },
  {
    name: "tput and stty without a terminal",
    needs: ["tput"],
    command:
      "tput cols; tput bold | od -An -c; tput sgr0 | od -An -c; stty -a; echo $?; tty; infocmp xterm | head -2; tput -T dumb colors",
  },
  {
    name: "10 MiB of output",
    command: "seq 1 1500000",
    through: "exec",
  },
  {
    name: "10 MiB of output on both streams, taken by a program",
    command: "{ seq 1 1500000; seq 1 500000 >&2; } 2>&1 | cksum; seq 1 1500000 | tail -1",
  },
  { name: "900 KB of output", quick: "at length", command: "seq 1 130000; seq 1 1000 >&2" },
  {
    name: "bytes of all values in the output",
    command:
      "i=0; while [ $i -lt 256 ]; do printf \"\\\\$(printf %o $i)\"; i=$((i+1)); done; printf '\\377\\376' >&2",
  },
  {
    name: "a line of a million characters",
    command: "head -c 1000000 /dev/zero | tr '\\0' y; echo; head -c 200000 /dev/zero | tr '\\0' n > f; wc f",
    varies: {},
  },
  {
    name: "groff and man pages",
    needs: ["groff"],
    command:
      "printf '.TH X 1\\n.SH NAME\\nx \\\\- a thing\\n' > x.1; groff -man -Tascii x.1 | grep -c NAME; groff -man -Tps x.1 | head -1",
  },
  {
    name: "file",
    needs: ["file"],
    command: "file f bin link d; file -b --mime-type f bin; file -s /dev/null",
    files: { f: "#!/bin/sh\n", "d/x": "x" },
    prepare: "printf '\\037\\213\\010\\0' > bin; ln -s f link",
  },
];
