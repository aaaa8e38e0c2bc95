"""t_shards.py - checkpoints in shards: a run goes on with any other number of ranks, damaged ones are passed over by name, a death at
every phase of writing one costs nothing but time, full disks and folders that hosts do not share are said in a sentence."""
import json
import os
import shutil
import struct
import unittest

import e2e
from e2e import AIR
from t_ranks import LAUNCHERS, Launched

OPTIONS = ["--target", "Passengers", "--horizon", "12", "--members", "1", "--steps", "4800", "--validate-every", "800", "--batch", "40",
           "--base", "last", "--no-guard", "--threads", "1", "--progress", "none", "--verbose"]
OFTEN = ["--checkpoint-every", "0.01s"]
WHOLE = {}  # the undisturbed model, trained once
KILLED = -9
NAMES = {"F32": 4, "F64": 8, "I64": 8, "U8": 1}


class Shards(Launched):
    fault = ""
    # a run of a second needs three checkpoints, for whose fsync a busy disk may take longer
    above = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

    def setUp(self):
        super().setUp()
        if "model" not in WHOLE:
            self.stretto("train", AIR, *OPTIONS, "-o", "whole.model", timeout=120)
            WHOLE["model"] = self.read("whole.model")
        else:
            with open(self.path("whole.model"), "wb") as f:
                f.write(WHOLE["model"])

    def environment(self, **more):
        return super().environment(**dict({"STRETTO_FAULT": self.fault}, **more))

    def train(self, ranks, fault, *more, status=KILLED):
        self.fault = fault
        r = self.stretto("train", AIR, *OPTIONS, *OFTEN, "--ranks", ranks, *more, "-o", "m.model", status=status, timeout=120)
        self.fault = ""
        return r

    def resume(self, ranks):
        r = self.stretto("resume", "m.model.run", "--ranks", ranks, "--progress", "none", timeout=120)
        self.same_model("whole.model", "m.model", "on %d ranks" % ranks)
        self.assertEqual(os.listdir(self.path("m.model.run/checkpoints")), [], "nothing stays")
        os.unlink(self.path("m.model"))
        return r

    def checkpoints(self, ending=".ckpt"):
        folder = self.path("m.model.run/checkpoints")
        return sorted(os.path.join(folder, n) for n in os.listdir(folder) if n.endswith(ending))

    def change(self, path, how):
        with open(path, "rb") as f:
            data = bytearray(f.read())
        data = how(data)
        with open(path, "wb") as f:
            f.write(data)

    def flipped(self, data):
        data[len(data) // 2] ^= 1
        return data

    def test_another_number_of_ranks(self):
        for before, after in ((1, 3), (3, 2), (4, 1)):
            self.train(before, "0:0:manifest:3")
            for path in self.checkpoints():
                self.assertEqual(sorted(os.listdir(path)), ["MANIFEST"] + ["shard-%03d-of-%03d" % (k, before) for k in range(before)])
                with open(path + "/MANIFEST", encoding="utf-8") as f:
                    m = json.load(f)
                self.assertEqual((m["world"], m["run"]["optim"], m["run"]["cursor"]), (before, "adam", 40 * m["run"]["step"]))
            self.assertEqual((len(self.checkpoints()), len(self.checkpoints(".part"))), (2, 1))
            r = self.resume(after)
            self.assertNotIn("passed over", r.err)
            self.assertRegex(r.err, r"resumed member 1 of 1 at step \d+")

    def test_damaged_ones_are_passed_over(self):
        for name, how, says in (("shard-001-of-002", self.flipped, "the file is damaged: its CRC32C is "),
                                ("shard-000-of-002", lambda data: data[:100], "the file has 100 bytes, "),
                                ("MANIFEST", self.flipped, "the manifest is damaged: its CRC32C is another one"),
                                ("MANIFEST", lambda data: data[:-40], "the manifest is damaged: its CRC32C is another one")):
            self.train(2, "0:0:manifest:3")
            older, newer = self.checkpoints()
            self.change(os.path.join(newer, name), how)
            r = self.resume(3)
            self.assertIn("%s/%s: %s" % (os.path.basename(newer), name, says), r.err)
            self.assertIn("passed over; continuing from m.model.run/checkpoints/" + os.path.basename(older), r.err)
        self.train(2, "0:0:manifest:3")
        for path in self.checkpoints():
            self.change(path + "/shard-001-of-002", self.flipped)
        r = self.stretto("resume", "m.model.run", "--ranks", 2, status=9, timeout=120)
        self.assertIn("error[E901] m.model.run/checkpoints/" + os.path.basename(self.checkpoints()[1]) + "/shard-001-of-002: ", r.err)

    def test_killed_at_every_phase(self):
        for ranks, fault in ((3, "1:0:write:2"), (3, "2:0:rename:3"), (1, "0:0:write:3"), (1, "0:0:manifest:2"), (2, "0:0:manifest")):
            self.train(ranks, fault)
            self.fault = "0:0:recovery"
            self.stretto("resume", "m.model.run", "--ranks", 2, "-q", status=KILLED)
            self.fault = ""
            self.resume(2)

    def test_killed_while_the_report_is_written(self):
        self.train(2, "0:0:report")
        self.assertIn("report.html.tmp", os.listdir(self.path("m.model.run")))
        self.assertFalse(os.path.exists(self.path("m.model")))
        self.resume(2)
        self.assertEqual([n for n in os.listdir(self.path("m.model.run")) if n.startswith("report")], ["report.html"])

    def test_once_over_all_restarts(self):
        self.fault = "*:0:write:2@" + self.path("fired")
        self.stretto("submit", "--ranks", 2, "--", "train", AIR, *OPTIONS, *OFTEN, "-o", "m.model", timeout=120)
        self.same_model("whole.model", "m.model", "killed once, under the supervisor")
        with open(self.path("m.model.run/supervisor.log"), encoding="utf-8") as f:
            self.assertEqual([e.get("signal") for e in map(json.loads, f) if e["event"] == "ended"], [9, None])

    def test_full_disk(self):
        r = self.train(2, "1:0:write:2=enospc", status=0)
        self.assertRegex(r.err, r"no checkpoint of step \d+: E703, cannot write \S+\.part/shard-001-of-002\.tmp: no space left on device; "
                                r"the one before it stays")
        self.assertRegex(r.err, r"checkpoints: \d+ of 0\.\d\d MB; steps waited [\d.]+ ms for one")
        self.same_model("whole.model", "m.model", "one checkpoint could not be written")
        r = self.train(2, "0:0:manifest=enospc", "--time-limit", "0.01s", "--checkpoint-every", "0", status=76)
        self.assertIn("no checkpoint of step", r.err)
        self.assertTrue(os.path.exists(self.path("m.model")), "the model is written without a checkpoint")
        self.assertEqual(len(os.listdir(self.path("m.model.run/checkpoints"))), 1, "tried once more")

    def test_what_was_damaged_while_it_was_written_is_noticed(self):
        r = self.train(2, "1:0:rename:2=bitflip", status=0)
        self.assertRegex(r.err, r"no checkpoint of step \d+: E901, \S+/shard-001-of-002: what is read back is not what was written")
        self.same_model("whole.model", "m.model", "one checkpoint was not usable")

    def single_file(self, folder):
        """The checkpoint as versions before wrote it: one safetensors file."""
        with open(folder + "/MANIFEST", encoding="utf-8") as f:
            m = json.load(f)
        shard = []
        for k in range(m["world"]):
            with open("%s/shard-%03d-of-%03d" % (folder, k, m["world"]), "rb") as f:
                shard.append(f.read())
        head, body = {"__metadata__": {"stretto.checkpoint": "1"}}, b""
        for t in sorted(m["tensors"], key=lambda t: (-NAMES[t["dtype"]], t["name"])):
            size = NAMES[t["dtype"]]
            data = b"".join(shard[s][at:at + (hi - lo) * size] for lo, hi, s, at in t["pieces"])
            head[t["name"]] = {"dtype": t["dtype"], "shape": [t["count"]], "data_offsets": [len(body), len(body) + len(data)]}
            body += data
        text = json.dumps(head).encode()
        text += b" " * (-len(text) % 8)
        shutil.rmtree(folder)
        with open(folder, "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text + body)

    def test_files_of_versions_before(self):
        self.train(3, "0:0:manifest:3")
        for path in self.checkpoints():
            self.single_file(path)
        self.resume(2)

    def test_hosts_that_share_no_folder(self):
        self.launched("openmpi", 2)
        os.mkdir(self.path("b"))
        script = self.write("go.sh", "#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK = 1 ] && cd b\nexec %s \"$@\"\n" % e2e.PROGRAM)
        os.chmod(script, 0o755)
        start = [*LAUNCHERS["openmpi"], "-n", "2", script]
        r = self.mpi("openmpi", 2, shell=[*start, "train", AIR, *OPTIONS, *OFTEN, "-o", "m.model"])
        self.assertRegex(r.err, r"no checkpoint of step \d+: E701, m\.model\.run/checkpoints/\d+\.part/shard-001-of-002: rank 0 on host \S+ does "
                                r"not see the part of the checkpoint that rank 1 on host \S+ wrote into this folder")
        self.same_model("whole.model", "m.model", "without checkpoints")
        for folder in ("m.model.run/checkpoints", "b/m.model.run/checkpoints"):
            self.assertEqual(os.listdir(self.path(folder)), [])
        self.train(2, "0:0:manifest:3")
        shutil.rmtree(self.path("b/m.model.run"))
        shutil.copytree(self.path("m.model.run"), self.path("b/m.model.run"), ignore=lambda d, names: [n for n in names if n.endswith("t")])
        r = self.mpi("openmpi", 2, shell=[*start, "resume", "m.model.run", "--progress", "none"], status=None)
        self.assertEqual(r.status, 8, r.err)
        self.assertRegex(r.err, r"error\[E804\] m\.model\.run/checkpoints/\d+\.ckpt: rank 1 on host \S+ does not see the checkpoint that rank 0")


if __name__ == "__main__":
    e2e.main()
