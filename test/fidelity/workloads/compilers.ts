import type { Workload } from "../workload.ts";
import { NPM_OUTPUT } from "./npm-output.ts";

/** A program of three files and a library. */
const PROGRAM = {
  "add.h": "int add(int a, int b);\n",
  "add.c": '#include "add.h"\nint add(int a, int b) { return a + b; }\n',
  "mul.c": "int mul(int a, int b) { return a * b; }\n",
  "main.c":
    '#include <stdio.h>\n#include "add.h"\nint mul(int, int);\nint main(int n, char **v) { printf("%d %d %s\\n", add(n, 1), mul(3, 4), v[0]); return 3; }\n',
};

const MAKEFILE = `CFLAGS = -O1
app: main.o add.o mul.o
\t$(CC) -o $@ $^
%.o: %.c
\t$(CC) $(CFLAGS) -c -o $@ $<
main.o add.o: add.h
check: app
\t@./app; test $$? = 3 && echo passed
clean:
\trm -f *.o app
.PHONY: check clean
`;

const CMAKE = `cmake_minimum_required(VERSION 3.10)
project(App C)
enable_testing()
add_library(sums STATIC add.c mul.c)
add_executable(app main.c)
target_link_libraries(app sums)
add_test(NAME runs COMMAND sh -c "./app; test $? = 3")
`;

/** What builds keep besides what they build: logs, caches of timings, stamps. */
const BUILD_STATE = [/CMakeFiles\//, /CMakeCache/, /\.ninja_/, /Testing\//];

export const COMPILERS: readonly Workload[] = [
  {
    name: "gcc compiles, links and the program runs",
    quick: true,
    needs: ["gcc"],
    files: PROGRAM,
    command:
      "gcc -Wall -o app *.c && ./app; echo $?; gcc -E main.c | grep -c 'int main'; gcc -S add.c; ls; gcc -c none.c; echo $?",
  },
  {
    name: "gcc says what is wrong",
    needs: ["gcc"],
    files: { "bad.c": "int main(void) { return x }\n", "warn.c": "int main(void) { int u; return 0; }\n" },
    command: "gcc -c bad.c; echo $?; gcc -Wall -c warn.c; echo $?",
  },
  {
    name: "a static and a shared library",
    needs: ["gcc", "ar", "nm"],
    files: PROGRAM,
    command:
      "gcc -c add.c mul.c; ar rcs libs.a add.o mul.o; gcc -fPIC -shared -o libd.so add.c mul.c; gcc -o s main.c -L. -l:libs.a; gcc -o d main.c -L. -ld -Wl,-rpath,'$ORIGIN'; ./s; ./d; gcc -o e main.c -L. -ld; ./e; echo $?; LD_LIBRARY_PATH=. ./e; ldd d | grep -c libd; nm -D libd.so | grep ' T '; strip d; size -A s | grep -c text; readelf -h d | grep Type; ar t libs.a",
  },
  {
    name: "g++ with threads and exceptions",
    needs: ["g++"],
    files: {
      "m.cpp":
        '#include <iostream>\n#include <thread>\n#include <stdexcept>\nint main() { int n = 0; std::thread t([&] { n = 42; }); t.join(); try { throw std::runtime_error("thrown"); } catch (std::exception &e) { std::cout << n << " " << e.what() << "\\n"; } throw 1; }\n',
    },
    command: "g++ -O1 -pthread -o m m.cpp && ./m; echo $?",
  },
  {
    name: "make -j, and what is rebuilt",
    needs: ["make", "gcc"],
    files: { ...PROGRAM, Makefile: MAKEFILE },
    command:
      "make -j4 check; make app; touch add.h; make -n app | sort; make -j2 app; make clean; ls; make none; echo $?",
    varies: { order: true },
  },
  {
    name: "make with recursion, a jobserver and a failure",
    quick: true,
    needs: ["make"],
    files: {
      Makefile: "all:\n\t+$(MAKE) -C sub one two\n\t@echo $(MAKELEVEL)\nfail:\n\tfalse\n",
      "sub/Makefile": "one two:\n\t@echo $@ > $@\n",
    },
    command: "make -j2 all; make fail; echo $?; make -k -j2 -C sub one two fail; echo $?; cat sub/one",
  },
  {
    name: "cmake, make and ctest",
    needs: ["cmake", "make", "gcc", "ctest"],
    files: { ...PROGRAM, "CMakeLists.txt": CMAKE },
    command:
      "cmake -S . -B build > log && cmake --build build -j2 | tail -1 && ctest --test-dir build | grep 'tests passed'; build/app; grep -c done log",
    varies: { content: [...BUILD_STATE, /\/log$/], paths: [/CMakeScratch|CMakeTmp/] },
  },
  {
    name: "cmake with ninja",
    needs: ["cmake", "ninja", "gcc"],
    files: { ...PROGRAM, "CMakeLists.txt": CMAKE },
    command:
      "cmake -G Ninja -S . -B build > log && ninja -C build | tail -1; build/app; touch add.c; ninja -C build -n | grep -c add.c; ninja -C build -t clean",
    varies: { content: [...BUILD_STATE, /\/log$/], paths: [/CMakeScratch|CMakeTmp/] },
  },
  {
    name: "meson",
    needs: ["meson", "ninja", "gcc"],
    files: {
      ...PROGRAM,
      "meson.build": "project('app', 'c')\nexecutable('app', 'main.c', 'add.c', 'mul.c')\n",
    },
    command: "meson setup build > log && ninja -C build | tail -1 | sed 's/.*Linking/Linking/'; build/app",
    varies: { content: [/\/log$/, /\/build\//], paths: [/meson-private/] },
  },
  {
    name: "autoconf and automake",
    needs: ["autoreconf", "automake", "make", "gcc"],
    files: {
      ...PROGRAM,
      "configure.ac":
        "AC_INIT([app],[1])\nAM_INIT_AUTOMAKE([foreign])\nAC_PROG_CC\nAC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n",
      "Makefile.am": "bin_PROGRAMS = app\napp_SOURCES = main.c add.c mul.c add.h\n",
    },
    command:
      "autoreconf -i > log 2>&1 && ./configure --prefix=$PWD/inst > log && make -s && make -s install > log && inst/bin/app; ls",
    varies: {
      content: [
        /\/(log|config\.log|config\.status|configure|aclocal\.m4|Makefile(\.in)?)$/,
        /autom4te/,
        /\.deps/,
      ],
    },
  },
  {
    name: "bison and flex",
    needs: ["bison", "flex", "gcc"],
    files: {
      "c.y":
        "%{\n#include <stdio.h>\nint yylex(void); void yyerror(const char *s) { puts(s); }\n%}\n%token N\n%left '+'\n%%\ns: e { printf(\"%d\\n\", $1); };\ne: e '+' e { $$ = $1 + $3; } | N;\n%%\nint main(void) { return yyparse(); }\n",
      "c.l":
        "%{\n#include <stdlib.h>\n#include \"c.tab.h\"\n%}\n%option noyywrap nounput noinput\n%%\n[0-9]+ { yylval = atoi(yytext); return N; }\n\\+ return '+';\n\\n return 0;\n%%\n",
    },
    command:
      "bison -d c.y && flex c.l && gcc -o c c.tab.c lex.yy.c && echo 1+2+39 | ./c; echo + | ./c; echo $?",
  },
  {
    name: "gcov shows what ran",
    needs: ["gcc", "gcov"],
    files: PROGRAM,
    command: "gcc --coverage -o app *.c; ./app; gcov app-main.gcda | grep -A1 main.c; ls | sort",
    varies: { content: [/\.gc(da|no)$/, /\/app$/, /\.gcov$/] },
  },
  {
    name: "ccache",
    needs: ["ccache", "gcc"],
    env: { CCACHE_DIR: "cache" },
    files: PROGRAM,
    command:
      "export CCACHE_DIR=$PWD/cache; ccache gcc -c add.c; rm add.o; ccache gcc -c add.c; ccache -s | grep -i hits | head -1; ls",
    varies: { content: [/\/cache\//], paths: [/\/cache\//] },
  },
  {
    name: "a sanitizer finds a read beyond the end",
    needs: ["gcc"],
    tried:
      "cd \"$(mktemp -d)\" && echo 'int main(void) { return 0; }' > a.c && gcc -fsanitize=address a.c && ./a.out",
    files: {
      "o.c":
        "#include <stdlib.h>\nint main(int n, char **v) { (void)v; char *p = malloc(4); return p[n + 3]; }\n",
    },
    command:
      "gcc -g -fsanitize=address,undefined -o o o.c; ./o 2>&1 | grep -E 'ERROR|READ of' | sed -E 's/==[0-9]+==|0x[0-9a-f]+|T[0-9]+//g'; ./o 2> /dev/null; echo $?",
  },
  {
    name: "javac, java and jar",
    needs: ["javac", "java", "jar"],
    files: {
      "M.java":
        'import java.nio.file.*;\npublic class M { public static void main(String[] a) throws Exception { System.out.println("java " + a.length); Files.writeString(Path.of("out"), "x"); System.exit(4); } }\n',
    },
    command:
      "javac -d classes M.java && java -cp classes M a b; echo $?; jar cfe m.jar M -C classes . && java -jar m.jar; jar tf m.jar; java -Xmx64m -XX:+UseSerialGC -cp classes M > log; cat out",
    varies: { content: [/\.jar$/] },
  },
  {
    name: "go builds, tests and runs",
    needs: ["go"],
    files: {
      "go.mod": "module example.org/m\n\ngo 1.19\n",
      "m.go":
        'package main\n\nimport "fmt"\n\nfunc Add(a, b int) int { return a + b }\nfunc main() { fmt.Println(Add(40, 2)) }\n',
      "m_test.go":
        'package main\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) { if Add(1, 2) != 3 { t.Fatal() } }\n',
    },
    command:
      "go build -o m . && ./m; go test ./... | sed 's/\\t[0-9.]*s$//'; go vet ./...; gofmt -l .; go run . | cat",
    varies: { content: [/\/m$/] },
  },
  {
    name: "rustc",
    needs: ["rustc", "cc"],
    files: {
      "m.rs":
        'fn main() { let v: Vec<i32> = (1..=3).collect(); println!("{:?}", v); std::process::exit(7); }\n',
    },
    command:
      "rustc -O m.rs && ./m; echo $?; rustc --test m.rs -o t && ./t | grep 'test result' | sed 's/;.*//'; echo 'fn x( {' > b.rs; rustc b.rs; echo $?",
    varies: { content: [/\/(m|t)$/] },
  },
  {
    name: "cargo build, test and run",
    needs: ["cargo"],
    files: {
      "Cargo.toml": '[package]\nname = "m"\nversion = "0.1.0"\nedition = "2021"\n',
      "src/main.rs":
        'fn main() { println!("{}", add(40, 2)); }\nfn add(a: i32, b: i32) -> i32 { a + b }\n#[test]\nfn adds() { assert_eq!(add(1, 2), 3); }\n',
    },
    command:
      "cargo build --offline 2>&1 | sed 's/ in [0-9.]*s//; s/(.*)//'; target/debug/m; cargo test --offline 2> /dev/null | grep 'test result' | sed 's/;.*//'; cargo run -q --offline; cat Cargo.lock",
    varies: { content: [/\/target\//], paths: [/\/target\//] },
  },
  {
    name: "tsc of a project",
    needs: ["node"],
    packages: ["typescript"],
    files: {
      "tsconfig.json":
        '{ "compilerOptions": { "outDir": "out", "target": "es2022", "module": "nodenext", "strict": true, "declaration": true, "incremental": true } }\n',
      "src/m.ts": "export const twice = (n: number): number => n * 2;\n",
      "src/bad.ts": 'import { twice } from "./m.js";\nconst s: string = twice(2);\nconsole.log(s);\n',
      "package.json": '{ "type": "module", "scripts": { "build": "tsc" } }\n',
    },
    command:
      "npx tsc; echo $?; cat out/src/m.d.ts out/m.d.ts; node out/bad.js || node out/src/bad.js; npm run build; echo $?",
    strictest: "strict",
    varies: { output: NPM_OUTPUT },
  },
  {
    name: "esbuild bundles",
    varies: { output: [[/pid: \d+/, "pid: N"]] },
    needs: ["node"],
    packages: ["esbuild"],
    files: { "a.js": 'import { b } from "./b.js"; console.log(b);\n', "b.js": "export const b = 1 + 1;\n" },
    command:
      "node_modules/.bin/esbuild a.js --bundle --minify --outfile=out.js --sourcemap 2>&1 | sed 's/ in .*ms//'; node out.js; node_modules/.bin/esbuild none.js; echo $?",
  },
];
