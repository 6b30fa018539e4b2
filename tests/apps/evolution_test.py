"""Lets creatures evolve with `weir run evolution` and with NumPy, and compares all generations."""

import os

import numpy as np

import weir_cli
from weir_cli import BAD_INPUT, CARDS, DEADLINE, USAGE

BEST, MUTATES_EVERY, HALF = 10, 7, np.float64(0.5)
COEFFICIENTS, CREATION, CROSSING, MUTATION = range(4)


def draw(seed, use, generation, island, creature, first, blocks):
    """Words of Philox4x64-10; NumPy counts up before its first block."""
    counter = first + (creature << 64) + ((2 * generation + island) << 128) + (use << 192)
    bits = np.random.Philox(counter=(counter - 1) % 2 ** 256, key=seed)
    return bits.random_raw(4 * blocks)


def uniform(words):
    return (words >> np.uint64(11)) * 2.0 ** -53


def fitness(problem, genes, coefficients):
    total = np.zeros(len(genes))
    for j, coefficient in enumerate(coefficients):
        if problem == "polynomial":
            power = genes[:, j].copy()
            for _ in range(j):
                power *= genes[:, j]
            total = total + power * coefficient
        else:
            distance = genes[:, j] - coefficient
            total = total - distance * distance
    return total


def hash_of(genes):
    with np.errstate(over="ignore"):
        words = np.ascontiguousarray(genes).view(np.uint64).ravel()
        words = words + np.arange(1, len(words) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return f"{np.sum(words ^ words >> np.uint64(31), dtype=np.uint64):016x}"


def expected(problem, creatures, genes, generations, eliminate=0, seed=1):
    """Returns the reports of each generation, and the last population."""
    told, last = [[] for _ in range(generations)], []
    coefficients = uniform(draw(seed, COEFFICIENTS, 0, 0, 0, 0, -(-genes // 4)))[:genes]
    for island in (0, 1):
        def born(creature, generation, island=island):
            words = draw(seed, CREATION, generation, island, creature, 0, -(-genes // 4))
            return uniform(words)[:genes]
        if problem == "polynomial":
            population = np.full((creatures, genes), HALF)
        else:
            population = np.array([born(i, 0) for i in range(creatures)])
        for generation in range(generations):
            for i in range(creatures - eliminate, creatures) if generation > 0 else ():
                population[i] = born(i, generation)
            fit = fitness(problem, population, coefficients)
            order = sorted(range(creatures), key=lambda i, fit=fit: (-fit[i], i))
            after = population[order]
            for rank in range(BEST, creatures):
                partner = int(draw(seed, CROSSING, generation, island, rank, 0, 1)[0]) % BEST
                words = draw(seed, CROSSING, generation, island, rank, 1, -(-genes // 256))
                bits = np.unpackbits(words.view(np.uint8), bitorder="little")[:genes].astype(bool)
                after[rank, bits] = population[order[partner], bits]
                if rank % MUTATES_EVERY == 0 and problem == "polynomial":
                    after[rank, rank % genes] *= 0.5
                elif rank % MUTATES_EVERY == 0:
                    step = uniform(draw(seed, MUTATION, generation, island, rank, 0, 1))[0] - 0.5
                    after[rank, rank % genes] += step * 0.25
            population = after
            told[generation].append({"best": fit[order[0]], "hash": hash_of(population)})
        last.append(population)
    return told, np.concatenate(last)


class EvolutionTest(weir_cli.CliTest):
    def evolve(self, problem, creatures, genes, generations, *options):
        report = self.report("evolution", "--problem", problem, "--n", 2 * creatures, "--genes",
                             genes, "--generations", generations, "--output",
                             self.path("last.npy"), *options)
        return report, np.load(self.path("last.npy"))

    def check(self, problem, creatures, genes, generations, *options, **more):
        report, population = self.evolve(problem, creatures, genes, generations, *options)
        told, last = expected(problem, creatures, genes, generations, **more)
        self.assertEqual(report["generations"], told)
        np.testing.assert_array_equal(population, last)
        return report

    def test_every_generation_equals_that_of_numpy(self):
        for problem in ("polynomial", "target"):
            for creatures, genes, generations in ((32, 40, 6), (10, 3, 4), (45, 300, 3), (11, 1, 2),
                                                  (70, 65, 4)):
                with self.subTest(problem=problem, creatures=creatures, genes=genes):
                    report = self.check(problem, creatures, genes, generations)
                    tasks = 2 * creatures * generations
                    self.assertEqual(report["stages"], dict.fromkeys(
                        ("reproduce", "evaluate", "select", "crossover", "mutate"), tasks))

    def test_generations_with_eliminate_and_seed_equal_those_of_numpy(self):
        self.check("target", 30, 12, 5, "--eliminate", 20, "--seed", 77, eliminate=20, seed=77)
        self.check("polynomial", 30, 12, 5, "--eliminate", 3, "--seed", 2 ** 63, eliminate=3,
                   seed=2 ** 63)

    def test_generations_do_not_depend_on_the_pipeline_options(self):
        problem = ("target", 100, 40, 8)
        told, last = expected(*problem)
        for options in (("--domains", "host:cores=1"), ("--baseline",), ("--no-batching",),
                        ("--end", "timeout"), ("--relief", "off"), ("--relief", "warp"),
                        ("--places", 2), ("--places", 2, "--baseline")):
            with self.subTest(options):
                report, population = self.evolve(*problem, *options)
                self.assertEqual(report["generations"], told)
                np.testing.assert_array_equal(population, last)
                self.assertEqual(report["meetings"], 80 if "--baseline" in options else 0)

    def test_generations_on_a_device_equal_those_of_numpy(self):
        for problem in (("polynomial", 45, 130, 3), ("target", 60, 65, 4), ("target", 11, 1, 2)):
            told, last = expected(*problem)
            for domains in CARDS:
                for options in ((), ("--no-batching",), ("--baseline",)):
                    with self.subTest(problem=problem, domains=domains, options=options):
                        report, population = self.evolve(*problem, "--domains", domains, *options)
                        self.assertEqual(report["generations"], told)
                        np.testing.assert_array_equal(population, last)
                        self.assertEqual(report["stages"]["evaluate"], 2 * problem[1] * problem[3])

    def test_the_pipeline_on_a_device_is_over_20_percent_faster_than_its_baseline(self):
        # 1.29; 1.214 in one process of eight, which keeps the batches of another first run.
        self.assertGreater(self.gain("evolution", "--generations", 2), 1.2)

    def test_generations_on_opencl_equal_those_of_numpy(self):
        domains = self.require_opencl()
        self.check("polynomial", 20, 70, 2, "--domains", domains)
        self.check("target", 20, 70, 2, "--domains", domains)

    def test_the_best_fitness_never_falls_and_its_error_shrinks_20_times(self):
        """To a target it gets much nearer than any creature of the first generation."""
        report, _ = self.evolve("target", 200, 20, 60)
        best = [max(island["best"] for island in islands) for islands in report["generations"]]
        self.assertEqual(best, sorted(best))
        self.assertGreater(best[-1], best[0] / 20)
        self.assertEqual(report["results"]["best fitness"], best[-1])

    def test_verification_passes_for_the_default_of_2048_creatures(self):
        report = self.report("evolution", "--generations", 2, "--verify")
        self.assertIs(report["verified"], True)
        self.assertEqual(report["params"]["n"], 2048)
        self.assertEqual([check["value"] for check in report["checks"]], [0, 0])

    def test_invalid_options_and_expired_timeouts_are_refused_and_leave_no_file(self):
        for options, code, word in (
            (("--n", 21), BAD_INPUT, "--n 21"),
            (("--n", 18), BAD_INPUT, "--n 18"),
            (("--n", 2000000000, "--genes", 100000), BAD_INPUT, "--n 2000000000"),
            (("--n", 40, "--eliminate", 11), BAD_INPUT, "--eliminate 11"),
            (("--genes", 0), USAGE, "--genes"),
            (("--problem", "chess"), USAGE, "--problem"),
            (("--precision", "float"), BAD_INPUT, "double"),
            (("--input", "creatures.csv"), USAGE, "--input: evolution does not use this option"),
            (("--output", "last.txt"), BAD_INPUT, "last.txt"),
            (("--generations", 1000000, "--timeout", "1e-6"), DEADLINE,
             "'evolution' is not at its end"),
            (("--timeout", "1e-6", "--baseline"), DEADLINE, "was over"),
        ):
            with self.subTest(options):
                self.assertIn(word, self.refusal("run", "evolution", *options, code=code))
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    weir_cli.main()
