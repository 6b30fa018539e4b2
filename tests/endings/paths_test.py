"""What becomes of output paths that an attacker has prepared, and of variables in a program that
runs with elevated privileges."""

import json
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

from traces import actions_of

TOOL = os.environ["WEIR_TOOL"]
RUN = ("run", "cholesky", "--n", "64", "--tile", "32", "--repeat", "1")
PRECIOUS = "keep me"


class PathsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(self.path("precious"), "w", encoding="ascii") as file:
            file.write(PRECIOUS)

    def path(self, name):
        return os.path.join(self.folder, name)

    def weir(self, *arguments, tool=TOOL, **variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
        return subprocess.run([tool, *arguments], cwd=self.folder, capture_output=True, text=True,
                              timeout=60, check=False, env={**environment, **variables})

    def check_link_is_replaced(self, name, *arguments, **variables):
        """The attack: a link under a name that another user is about to write to."""
        for target in ("precious", "missing"):
            os.symlink(self.path(target), self.path(name))
            result = self.weir(*arguments, **variables)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertFalse(os.path.islink(self.path(name)))
            self.assertGreater(os.path.getsize(self.path(name)), 100)
            os.remove(self.path(name))
            with open(self.path("precious"), encoding="ascii") as file:
                self.assertEqual(file.read(), PRECIOUS)
            self.assertEqual(os.listdir(self.folder), ["precious"])

    def test_a_link_is_replaced_by_a_trace(self):
        for name in ("t.json", "t.pftrace"):
            self.check_link_is_replaced(name, *RUN, "--trace", name)
            self.check_link_is_replaced(name, *RUN, WEIR_TRACE=name)

    def test_a_link_is_replaced_by_a_result(self):
        for name in ("l.npy", "l.mtx"):
            self.check_link_is_replaced(name, *RUN, "--output", name)

    def test_a_trace_over_a_hard_link_leaves_the_other_name_unchanged(self):
        os.link(self.path("precious"), self.path("t.json"))
        self.assertEqual(self.weir(*RUN, "--trace", "t.json").returncode, 0)
        with open(self.path("precious"), encoding="ascii") as file:
            self.assertEqual(file.read(), PRECIOUS)

    def test_output_files_have_the_permissions_that_the_umask_leaves(self):
        before = os.umask(0o077)
        try:
            self.assertEqual(
                self.weir(*RUN, "--trace", "t.json", "--output", "l.npy").returncode, 0)
        finally:
            os.umask(before)
        for name in ("t.json", "l.npy"):
            self.assertEqual(stat.S_IMODE(os.stat(self.path(name)).st_mode), 0o600)

    def test_shell_syntax_in_file_names_is_not_executed(self):
        for name in ("; touch x;.json", "$(touch x).json", "`touch x`.json", "a b\nc.json"):
            result = self.weir(*RUN, "--trace", name)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertGreater(actions_of(self.path(name)), 0)
            os.remove(self.path(name))
        self.assertEqual(os.listdir(self.folder), ["precious"])

    def test_the_doctor_leaves_no_file_in_the_temporary_folder(self):
        result = self.weir("doctor", TMPDIR=self.folder)
        self.assertIn("trace", result.stdout)
        self.assertEqual(os.listdir(self.folder), ["precious"])

    def test_a_setuid_program_ignores_the_environment_variables(self):
        if os.getuid() != 0:
            self.skipTest("only root can give a program to another user")
        nobody = pwd.getpwnam("nobody").pw_uid
        os.chmod(self.folder, 0o777)
        tool = shutil.copy(TOOL, self.path("tool"))
        os.chown(tool, nobody, -1)
        variables = {"WEIR_DOMAINS": "sim", "WEIR_TRACE": "stolen.json",
                     "XDG_CACHE_HOME": self.path("cache")}
        plain = self.weir("info", "--json", tool=tool, **variables)
        self.assertEqual(self.opened(plain), "sim")
        os.remove(self.path("stolen.json"))
        shutil.rmtree(self.path("cache"))
        os.chmod(tool, 0o4755)
        raised = self.weir("info", "--json", tool=tool, **variables)
        if raised.returncode != 0 or self.opened(raised) == "sim" and self.nosuid():
            self.skipTest(f"the copy cannot run with the rights of nobody: {raised.stderr}")
        self.assertEqual(self.opened(raised), "host")
        for name in ("stolen.json", "cache"):
            self.assertFalse(os.path.exists(self.path(name)))

    def opened(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["domains"][0]["backend"]

    def nosuid(self):
        return bool(os.statvfs(self.folder).f_flag & os.ST_NOSUID)


if __name__ == "__main__":
    program = unittest.main(exit=False)
    if not program.result.wasSuccessful():
        sys.exit(1)
    print(f"proof: {program.result.testsRun} attacks by paths and variables fail")
