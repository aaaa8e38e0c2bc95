#!/usr/bin/env python3
"""t_tools.py: every check of tools/ finds what it is for, in small trees made for the purpose."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Tree(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="stretto_tools_")
        self.addCleanup(shutil.rmtree, self.root)
        for name in ("floors.txt", "limits.txt"):
            self.write("tools/" + name, self.real("tools/" + name))

    def real(self, path):
        with open(os.path.join(ROOT, path), encoding="utf-8") as f:
            return f.read()

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as f:
            f.write(text)

    def run_tool(self, name, *arguments):
        result = subprocess.run([sys.executable, os.path.join(ROOT, "tools", name), *arguments, self.root], capture_output=True,
                                text=True, check=False)
        return result.returncode, result.stdout + result.stderr


class Floors(Tree):
    def check(self, path, text, says=None):
        self.write(path, text)
        status, output = self.run_tool("floors.py")
        self.assertEqual(status, 1 if says else 0, output)
        if says:
            self.assertIn(f"{path}:{says}", output)

    def test_down_is_fine(self):
        self.check("src/train/x.c", '#include <math.h>\n#include "base/err.h"\n#include "exec/exec.h"\n#include "train/x.h"\n')

    def test_up_is_refused(self):
        self.check("src/data/x.c", '/* */\n#include "train/loop.h"\n', "2: data includes train/loop.h")

    def test_siblings_are_refused(self):
        self.check("src/kern/x.c", '#include "topo/machine.h"\n', "1: kern includes topo/machine.h")

    def test_planning_is_pure(self):
        self.check("src/plan/x.c", '#include "data/table.h"\n', "1: plan includes data/table.h")

    def test_a_library_stays_behind_its_file(self):
        self.check("src/base/json.c", "#include <jansson.h>\n")
        self.check("src/ckpt/x.c", "#include <jansson.h>\n", "1: ckpt includes jansson.h")

    def test_unknown_system_headers_are_refused(self):
        self.check("src/model/x.c", "#include <curl/curl.h>\n", "1: model includes curl/curl.h")

    def test_the_public_header_sees_nothing(self):
        self.check("include/stretto/stretto.h", '#include "base/err.h"\n', "1: include includes base/err.h")

    def test_examples_see_the_public_header_only(self):
        self.check("examples/a.c", "#include <stretto/stretto.h>\n")
        self.check("examples/b.c", '#include "api/config.h"\n', "1: examples includes api/config.h")

    def test_link_lines_obey_too(self):
        self.write("src/data/CMakeLists.txt", "stretto_floor(data SOURCES a.c USES base train LIBS x)\n")
        status, output = self.run_tool("floors.py")
        self.assertEqual(status, 1)
        self.assertIn("st_data links st_train", output)

    def test_a_law_that_goes_up_is_refused(self):
        self.write("tools/floors.txt", "base 0 -\ntens 1 base plan\nplan 4 base\n")
        self.assertIn("includes go down", self.run_tool("floors.py")[1])


class Cycles(Tree):
    A = "/* */\n#include \"data/x.h\"\nvoid a_do(int n) {\n    if (n > 0) b_do(n - 1);\n}\n"
    B = "/* */\n#include \"data/x.h\"\nvoid b_do(int n) {\n    a_do(n);\n}\n"

    def check(self, says=None):
        status, output = self.run_tool("cycles.py")
        self.assertEqual(status, 1 if says else 0, output)
        if says:
            self.assertIn(says, output)

    def setUp(self):
        super().setUp()
        self.write("tools/cycles.txt", "# none\n")
        self.write("src/data/a.c", self.A)

    def test_a_call_one_way_is_fine(self):
        self.write("src/data/b.c", "/* a_do(1) */\nvoid b_do(int n) {\n    (void)n;\n}\n")
        self.check()

    def test_a_planted_cycle_is_found(self):
        self.write("src/data/b.c", self.B)
        self.check("src/data: 2 files call each other in a circle: a.c b.c\n    a.c calls b.c: b_do")

    def test_a_cycle_of_three_files_in_folders(self):
        self.write("src/data/b.c", self.B.replace("a_do", "c_do"))
        self.write("src/data/in/c.c", self.B.replace("a_do", "x").replace("b_do", "c_do").replace("x(n)", "a_do(n)"))
        self.check("3 files call each other in a circle: a.c b.c in/c.c")

    def test_a_cycle_through_a_macro_of_a_header(self):
        self.write("src/data/x.h", "/* */\n#define AGAIN(n) a_do((n)-1)\n")
        self.write("src/data/b.c", self.B.replace("a_do(n)", "AGAIN(n)"))
        self.check("a.c b.c")

    def test_functions_of_the_same_name_are_kept_apart(self):
        self.write("src/data/b.c", self.B + "static void a_do(int n) {\n    (void)n;\n}\n")
        self.check()

    def test_a_permitted_cycle_has_a_reason(self):
        self.write("src/data/b.c", self.B)
        self.write("tools/cycles.txt", "src/data: a.c b.c - a grammar calls itself\n")
        self.check()
        self.write("tools/cycles.txt", "src/data: a.c b.c\n")
        self.check("not understood")

    def test_a_permitted_cycle_that_is_gone(self):
        self.write("tools/cycles.txt", "src/data: a.c b.c - a grammar calls itself\n")
        self.check("tools/cycles.txt:1: this is no cycle any more")


class Unused(Tree):
    def check(self, text, says=None):
        self.write("src/data/a.c", text)
        self.write("tests/data/t_a.c", "void t(void) {\n    for_tests();\n}\n")
        status, output = self.run_tool("unused.py")
        self.assertEqual(status, 1 if says else 0, output)
        if says:
            self.assertIn(says, output)

    def setUp(self):
        super().setUp()
        self.write("tools/unused.txt", "# none\n")
        self.write("src/data/a.h", "/* used() */\nvoid used(void);\nvoid dead(int n);\n")
        self.write("src/data/b.c", "static void f(void) {\n    used();\n}\n")

    def test_a_used_function_is_fine(self):
        self.check("void used(void) {\n}\n")

    def test_a_function_that_nobody_calls(self):
        self.check("/* dead() */\nvoid dead(int n) {\n    (void)n;\n}\n", "src/data/a.c: dead is used by nobody")

    def test_a_function_that_tests_alone_call(self):
        self.check("void for_tests(void) {\n}\n", "for_tests is used by tests only: tests/data/t_a.c")

    def test_names_put_together_by_a_macro(self):
        self.write("src/data/list.def", "VERB(go)\n")
        self.write("src/data/c.c", "#define VERB(name) cmd_##name,\n")
        self.check("void cmd_go(void) {\n}\n")
        self.check("void cmd_stay(void) {\n}\n", "cmd_stay is used by nobody")

    def test_the_public_header_is_exempt(self):
        self.write("include/stretto/stretto.h", "void dead(int n);\n")
        self.check("void dead(int n) {\n    (void)n;\n}\n")

    def test_exceptions(self):
        self.write("tools/unused.txt", "dead a reason\n")
        self.check("void dead(int n) {\n    (void)n;\n}\n")
        self.check("void used(void) {\n}\n", "tools/unused.txt:1: dead is used, or there is none")


class Commits(Tree):
    def git(self, *arguments):
        done = subprocess.run(["git", "-C", self.root, "-c", "user.name=t", "-c", "user.email=t@t", *arguments], capture_output=True,
                              text=True, check=True)
        return done.stdout.strip()

    def setUp(self):
        super().setUp()
        self.git("init", "-q")
        self.first = self.commit("what was before is not looked at.")

    def commit(self, subject):
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")

    def check(self, subject, says=None):
        self.commit(subject)
        status, output = self.run_tool("commits.py", "--since", self.first)
        self.assertEqual(status, 1 if says else 0, output)
        if says:
            self.assertIn(says, output)

    def test_imperative_subjects_are_fine(self):
        self.check("comm: read large messages in place when cores share a cache")
        self.check("cli, src/data: pass on what the seed feeds")

    def test_long_subjects(self):
        self.check("comm: " + "x" * 55, "61 columns, the limit is 60")

    def test_subjects_without_an_area(self):
        self.check("Fix it", "not of the form")

    def test_other_forms_of_the_verb(self):
        for verb in ("added", "adding", "adds"):
            with self.subTest(verb=verb):
                self.check(f"data: {verb} a reader", f'"{verb}" is not imperative')
                self.git("reset", "-q", "--hard", self.first)

    def test_sentences(self):
        self.check("data: Add a reader", "small letters")
        self.git("reset", "-q", "--hard", self.first)
        self.check("data: add a reader.", "a full stop")

    def test_merges_are_exempt(self):
        self.git("checkout", "-q", "-b", "other")
        self.commit("data: add a reader")
        self.git("checkout", "-q", "-")
        self.commit("data: add another one")
        self.git("merge", "-q", "--no-ff", "-m", "Merge branch 'other'", "other")
        self.check("docs: name it")

    def test_a_shallow_clone_is_skipped(self):
        self.commit("Fix it")
        clone = tempfile.mkdtemp(prefix="stretto_tools_")
        self.addCleanup(shutil.rmtree, clone)
        self.git("clone", "-q", "--depth", "1", "file://" + self.root, clone + "/c")
        self.root = clone + "/c"
        status, output = self.run_tool("commits.py", "--since", self.first)
        self.assertEqual(status, 0)
        self.assertIn("skipped", output)


class Limits(Tree):
    def setUp(self):
        super().setUp()
        self.write("tools/limits.txt", "".join(line for line in self.real("tools/limits.txt").splitlines(True)
                                               if not line.startswith("allow") or "*" in line))

    def check(self, text, says=None, path="src/data/x.c"):
        self.write(path, text)
        status, output = self.run_tool("limits.py")
        self.assertEqual(status, 1 if says else 0, output)
        if says:
            self.assertIn(says, output)

    def test_a_plain_file_passes(self):
        self.check('/* x.c - text */\nint f(int a) {\n    if (a) return 1;\n    return "exit(" ? 0 : 2; /* malloc(3) */\n}\n')

    def test_long_files(self):
        self.check("/* x */\n" + "int a;\n" * 600, "601 lines")

    def test_long_functions(self):
        self.check("/* x */\nint f(void) {\n" + "    g();\n" * 100 + "}\n", "x.c:2: f has 102 lines")

    def test_many_parameters(self):
        text = "/* x */\nint f(int a, int b, int c, int d, int e, int g, int h, int (*i)(int, int), int j) { return 0; }\n"
        self.check(text, "f has 9 parameters")
        os.remove(os.path.join(self.root, "src/data/x.c"))
        self.check(text, path="src/kern/x.c")

    def test_deep_nesting(self):
        text = "if (a) { " * 5 + "b(); " + "}" * 5
        self.check("/* x */\nint f(void) {\n" + text + "\n}\n", "f nests 5 deep")
        self.check("/* x */\nint f(void) {\n    struct s a = {{{{{{0}}}}}};\n    g((struct s){.a = {{{{0}}}}});\n}\n")

    def test_banned_calls(self):
        for call in ("strcpy(a, b)", "sprintf(a, b)", "atoi(a)", "strtok(a, b)", "alloca(3)", "malloc(3)", "free(p)", "printf(a)",
                     "exit(1)", "abort()"):
            name = call.split("(")[0]
            self.check("/* x */\nint f(void) {\n    " + call + ";\n}\n", f"x.c:3: {name} is banned")
        self.check("/* x */\nint f(void) {\n    mem_free(p);\n    a->free(p);\n    snprintf(a, b, c);\n}\n")

    def test_the_library_does_not_print(self):
        self.check("/* x */\nint f(void) {\n    fprintf(stderr, a);\n}\n", "stderr: the library writes where it is told")

    def test_the_program_may_print_but_not_strcpy(self):
        os.makedirs(os.path.join(self.root, "src"), exist_ok=True)
        self.check('/* x */\nint f(void) {\n    printf("a");\n}\n', path="cli/x.c")
        self.check("/* x */\nint f(void) {\n    strcpy(a, b);\n}\n", "strcpy is banned", path="cli/x.c")

    def test_looks(self):
        self.check("int a;\n", "opens with a comment")
        self.check("/* x */\n" + "a" * 131 + "\n", "131 columns")
        self.check("/* x */\n\tint a;\n", "a tab")
        self.check("/* x */\nint a; \n", "blanks at the end")
        self.check("/* x */\n/* TO" "DO: later */\n", "unfinished work")

    def test_exceptions_need_reasons_and_uses(self):
        self.write("tools/limits.txt", self.real("tools/limits.txt") + "allow columns src/a.c\n")
        self.assertIn("needs a reason", self.run_tool("limits.py")[1])
        self.write("tools/limits.txt", self.real("tools/limits.txt") + "allow columns src/a.c it was long once\n")
        self.assertIn("no longer needed", self.run_tool("limits.py")[1])

    def test_machine_paths(self):
        self.write("README.md", "see /ro" "ot/notes\n")
        subprocess.run(["git", "-C", self.root, "init", "-q"], check=True)
        subprocess.run(["git", "-C", self.root, "add", "README.md"], check=True)
        self.assertIn("README.md:1: /ro" "ot/n: a path of one machine", self.run_tool("limits.py")[1])


class Docsync(Tree):
    def setUp(self):
        super().setUp()
        for path in ("src/base/options.def", "src/opt/verbs.def", "src/opt/presets.def", "src/base/errors.def",
                     "src/base/warnings.def"):
            self.write(path, self.real(path))
        for path in ("src/model/cell/cells.def", "src/model/loss/losses.def", "src/model/optim/optims.def", "src/learn/learners.def"):
            self.write(path, "\n")
        self.write("src/model/cell/cells.def", "CELL(lstm)\n")
        self.write("src/model/cell/lstm.c", "/* lstm.c - long short-term memory. */\n")
        self.write("docs/README.md", "\n")

    def test_pages_follow_the_tables(self):
        self.assertIn("docs/OPTIONS.md is not current", self.run_tool("docsync.py")[1])
        self.run_tool("docsync.py", "--write")
        self.assertNotIn("is not current", self.run_tool("docsync.py")[1])
        with open(os.path.join(self.root, "docs/PARTS.md"), encoding="utf-8") as f:
            self.assertIn("| `lstm` | long short-term memory |", f.read())
        self.write("src/base/warnings.def", 'W(99, 0, "new", "text")\n')
        self.assertIn("docs/ERRORS.md is not current", self.run_tool("docsync.py")[1])

    def test_codes_are_raised_and_tested(self):
        self.write("src/data/x.c", "FAIL(E204)\n")
        self.write("tests/cli/cases/x.case", "stretto x\n==== stderr glob\nerror[E205] *\n")
        output = self.run_tool("docsync.py")[1]
        self.assertNotIn("nothing raises E204", output)
        self.assertIn("no test provokes E204", output)
        self.assertIn("nothing raises E205", output)
        self.assertNotIn("no test provokes E205", output)

    def test_readme_and_tour_are_complete(self):
        self.write("README.md", "`stretto train a.csv`\n")
        self.write("docs/TOUR.md", "src/base holds the small things\n")
        output = self.run_tool("docsync.py")[1]
        self.assertNotIn("mention the verb train", output)
        self.assertIn("mention the verb resume", output)
        self.assertNotIn("mention src/base", output)
        self.assertIn("mention src/model", output)

    def test_public_functions_have_comments_and_users(self):
        self.write("include/stretto/stretto.h", "/* --- 1 things --- */\n/* Makes a thing. */\nSTRETTO_API int stretto_a(int x);\n"
                                                "STRETTO_API int stretto_d(void);\n\n"
                                                "STRETTO_API int stretto_b(void);\nSTRETTO_API int stretto_c(void); /* c */\n")
        self.write("examples/a.c", "stretto_b();\n")
        output = self.run_tool("docsync.py")[1]
        self.assertNotIn("stretto_a has no comment", output)
        self.assertIn("stretto_b has no comment", output)
        self.assertNotIn("stretto_c has no comment", output)
        self.assertIn("stretto_d has no comment", output)  # that of a stands before a alone
        self.assertIn("no test or example calls stretto_a", output)
        self.assertNotIn("no test or example calls stretto_b", output)


class Golden(Tree):
    """tests/cli/run.sh with a stand-in for the program."""

    def setUp(self):
        super().setUp()
        self.write("run.sh", self.real("tests/cli/run.sh"))
        self.write("program", "#!/bin/sh\necho one $1\necho two\necho three\necho oops >&2\nexit 3\n")
        os.chmod(os.path.join(self.root, "program"), 0o755)
        self.case("==== exit 3\n")

    def case(self, stdout, script="stretto x\n"):
        self.write("cases/a.case", script + stdout + "==== stderr exact\noops\n")

    def golden(self, *arguments):
        result = subprocess.run(["sh", os.path.join(self.root, "run.sh"), os.path.join(self.root, "program"), *arguments],
                                capture_output=True, text=True, check=False)
        return result.returncode, result.stdout

    def test_exact(self):
        self.case("==== exit 3\n==== stdout exact\none x\ntwo\nthree\n")
        self.assertEqual(self.golden()[0], 0)
        self.case("==== exit 3\n==== stdout exact\none x\ntwo\nthree\nfour\n")
        self.assertEqual(self.golden()[0], 1)

    def test_globs(self):
        for text, fits in (("one *\n...\n", True), ("...\nthree\n", True), ("...\ntwo\n...\n", True), ("one x\ntwo\nth*ee\n", True),
                           ("*\n*\n*\n", True), ("one x\n", False), ("...\ntwo\n", False), ("one x\n...\nfour\n...\n", False),
                           ("o.e x\n...\n", False), ("one x\ntwo\nthree\n*\n", False), ("", False)):
            self.case("==== exit 3\n==== stdout glob\n" + text)
            status, output = self.golden("a")
            self.assertEqual(status, 0 if fits else 1, repr(text) + output)

    def test_status_and_unexpected_output(self):
        self.assertIn("nothing expected on stdout", self.golden()[1])
        self.case("==== exit 4\n==== stdout glob\n...\n")
        self.assertIn("exit status 3, expected 4", self.golden()[1])
        self.case("==== stdout glob\n...\n")
        self.assertIn("exit status 3, expected 0", self.golden()[1])

    def test_sections_that_are_unknown(self):
        self.case("==== exit 3\n==== stdout glop\n...\n")
        status, output = self.golden()
        self.assertEqual(status, 1)
        self.assertIn("no such section: ==== stdout glop", output)

    def test_update_accepts_what_came_out(self):
        self.case("==== stdout glob\none *\n...\n")
        self.golden("--update")
        self.assertEqual(self.golden()[0], 0)
        with open(os.path.join(self.root, "cases/a.case"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "stretto x\n==== exit 3\n==== stdout glob\none *\n...\n==== stderr exact\noops\n")
        self.case("")
        self.golden("--update")
        with open(os.path.join(self.root, "cases/a.case"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "stretto x\n==== exit 3\n==== stdout exact\none x\ntwo\nthree\n==== stderr exact\noops\n")

    def test_skipping(self):
        self.case("", "echo no data here\nexit 77\n")
        status, output = self.golden()
        self.assertEqual(status, 77)
        self.assertIn("skipped a: no data here", output)


if __name__ == "__main__":
    unittest.main()
