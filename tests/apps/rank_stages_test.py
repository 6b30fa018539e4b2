"""Pipelines one of whose stages runs on another rank, with the same results."""

import json
import random

import face_detection_test as faces
import weir_cli

DOMAINS = ("--ranks", 2, "--domains", "host:cores=1,rank:1")


class RankStagesTest(weir_cli.CliTest):
    def check(self, *arguments, stage):
        """Both forms of an application, which check their results themselves."""
        for options in ((), ("--baseline",)):
            with self.subTest(arguments=arguments, options=options):
                output, _ = self.weir("run", *arguments, *options, *DOMAINS, "--verify", "--json")
                report = json.loads(output)
                self.assertGreater(min(report["bytes"]["h2d"], report["bytes"]["d2h"]), 0)
                if "pipeline" in report:
                    stages = {each["name"]: each for each in report["pipeline"]["stages"]}
                    self.assertGreater(stages[stage]["items"], 0)

    def test_reyes_passes_verification_with_a_stage_on_another_rank(self):
        self.check("reyes", "--width", 96, "--height", 72, stage="dice")

    def test_raster_passes_verification_with_a_stage_on_another_rank(self):
        self.check("raster", "--width", 160, "--height", 120, "--pictures", 3, stage="raster")

    def test_evolution_passes_verification_with_a_stage_on_another_rank(self):
        self.check("evolution", "--n", 64, "--generations", 3, stage="evaluate")

    def test_gene_alignment_passes_verification_with_a_stage_on_another_rank(self):
        letters = random.Random(1)
        target = "".join(letters.choice("ACGT") for _ in range(400))
        path = self.write("target.fa", f">target\n{target}\n")
        self.check("gene-alignment", "--input", path, stage="coarse")

    def test_face_detection_passes_verification_with_a_stage_on_another_rank(self):
        picture = faces.write_map(self.path("noise.pgm"), faces.noise(90, 70, 3))
        cascade = self.write("random.xml", faces.cascade_text(*faces.random_cascade(6, 3)))
        self.check("face-detection", "--input", picture, "--cascade", cascade, stage="scan")

    def test_stencil_passes_verification_with_a_stage_on_another_rank(self):
        for precision in weir_cli.TYPES:
            self.check("stencil", "--n", 128, "--precision", precision, stage="stencil")


if __name__ == "__main__":
    weir_cli.main()
