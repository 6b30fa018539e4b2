"""A trace that cannot be written costs one warning: no result, no exit code, no file in its place."""

import json
import os
import subprocess
import tempfile
import unittest

from tool import weir

RUN = ["run", "matmul", "--n", "64", "--domains", "sim:cores=1", "--verify"]
#: Enough actions for a trace of more than 64 KiB.
LONG_RUN = ["run", "matmul", "--n", "512", "--tile", "32", "--domains", "sim:cores=1"]


class TraceDisk(unittest.TestCase):
    """Each way to ask for a trace meets each way in which a disk refuses it."""

    cases = 0

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    @classmethod
    def tearDownClass(cls):
        print(f"proof: {cls.cases} traces that could not be written, no result lost")

    def check_lost(self, ran, reason):
        """The run succeeded, and said once why there is no trace."""
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("matmul", ran.stdout)
        self.assertEqual(ran.stderr.count("\n"), 1, ran.stderr)
        self.assertRegex(ran.stderr, "^weir: cannot write the trace: ")
        self.assertIn(reason, ran.stderr)
        type(self).cases += 1

    def lose(self, path, reason, command=RUN):
        self.check_lost(weir(*command, WEIR_TRACE=path), reason)
        self.check_lost(weir(*command, "--trace", path), reason)

    def test_a_trace_to_a_full_device_costs_one_warning(self):
        for name in ("json", "pftrace"):
            link = os.path.join(self.folder, "full." + name)
            os.symlink("/dev/full", link)
            self.lose(link, "No space left on device")
            self.assertTrue(os.path.islink(link))

    def mount_small_disk(self):
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", self.folder],
            capture_output=True,
            check=False,
        )
        if mounted.returncode != 0:
            self.skipTest("this user may not mount a file system of 64 KiB")
        self.addCleanup(subprocess.run, ["umount", self.folder], check=True)

    def test_a_trace_on_a_full_disk_costs_one_warning_and_leaves_no_file(self):
        self.mount_small_disk()
        for name in ("trace.json", "trace.pftrace"):
            self.lose(os.path.join(self.folder, name), "No space left on device", LONG_RUN)
            self.assertEqual(os.listdir(self.folder), [])

    def test_an_older_trace_stays_when_the_disk_has_no_room_for_a_new_one(self):
        self.mount_small_disk()
        path = os.path.join(self.folder, "trace.json")
        self.assertEqual(weir(*RUN, "--trace", path).returncode, 0)
        with open(path, encoding="utf-8") as file:
            before = file.read()
        self.lose(path, "No space left on device", LONG_RUN)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), before)
        json.loads(before)

    def test_a_missing_folder_is_a_warning_by_variable_and_refused_by_option(self):
        path = os.path.join(self.folder, "missing", "trace.json")
        self.check_lost(weir(*RUN, WEIR_TRACE=path), "No such file or directory")
        # What the command line says is checked before the run.
        refused = weir(*RUN, "--trace", path)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("missing", refused.stderr)

    def test_a_trace_in_a_read_only_folder_costs_one_warning(self):
        if os.geteuid() == 0:
            self.skipTest("root may write to a folder that is read-only")
        os.chmod(self.folder, 0o500)
        self.addCleanup(os.chmod, self.folder, 0o700)
        path = os.path.join(self.folder, "trace.json")
        self.check_lost(weir(*RUN, WEIR_TRACE=path), "Permission denied")


if __name__ == "__main__":
    unittest.main()
